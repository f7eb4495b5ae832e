// SPDX-License-Identifier: MIT
// Brings the names of mace/plan into the namespace of the CPU backend.
#pragma once

#include "mace/plan/names.h"

namespace mlff::mace::cpu {

using namespace plan;

}  // namespace mlff::mace::cpu
