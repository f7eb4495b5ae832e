// SPDX-License-Identifier: MIT
// A readout as matrices, for one head.
#pragma once

#include "equivariant/gpu/readout_matrices.h"
#include "mace/weights/weights.h"

namespace mlff::mace::gpu {

equivariant::gpu::ReadoutMatrices matrices_of(const Readout& readout, int head);

}  // namespace mlff::mace::gpu
