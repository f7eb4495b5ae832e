// SPDX-License-Identifier: MIT
// Brings the names of the shared GPU engine into the namespace of MACE's kernels.
#pragma once

#include "gpu/engine/atom_rows.h"

namespace mlff::mace::gpu {

using namespace mlff::gpu;

}  // namespace mlff::mace::gpu
