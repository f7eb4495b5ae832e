// SPDX-License-Identifier: MIT
// The teacher's labels of one frame.
#pragma once

#include <string>

#include "engine/session.h"
#include "formats/extxyz.h"

namespace mlff {

// Adds energy, forces, and the stress if there is a cell and the teacher gives one. "" if that went well, else why the
// frame is to be left out: the teacher cannot evaluate it, or a force is not finite or larger than `largest_force`.
std::string label_frame(Session& teacher, Frame& frame, double largest_force);

}  // namespace mlff
