// SPDX-License-Identifier: MIT
// MACE's kernels use the names of the engine that all models share as their own.
#pragma once

#include "cuda_engine/atom_rows.h"

namespace mlff::mace::cuda {

using namespace mlff::cuda;

}  // namespace mlff::mace::cuda
