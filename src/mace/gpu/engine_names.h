// SPDX-License-Identifier: MIT
// MACE's kernels use the names of the engine that all models share as their own.
#pragma once

#include "gpu/engine/atom_rows.h"

namespace mlff::mace::gpu {

using namespace mlff::gpu;

}  // namespace mlff::mace::gpu
