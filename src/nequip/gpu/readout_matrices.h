// SPDX-License-Identifier: MIT
// The readout of the scalars of the last layer, as matrices.
#pragma once

#include <string>

#include "equivariant/gpu/readout_matrices.h"
#include "nequip/weights/weights.h"

namespace mlff::nequip::gpu {

// Why it is none that the GPU's kernels have; "" if it is one.
std::string why_no_matrices(const DenseNetwork& readout);

// Features are all those of `features`; only its scalars (0e) are read.
equivariant::gpu::ReadoutMatrices matrices_of(const DenseNetwork& readout, const Irreps& features);

}  // namespace mlff::nequip::gpu
