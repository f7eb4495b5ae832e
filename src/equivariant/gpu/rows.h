// SPDX-License-Identifier: MIT
// Rows of numbers of all atoms: copies of columns, and biases.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "equivariant/gpu/engine_names.h"

namespace mlff::equivariant::gpu {

// Copies the first `count` numbers of each atom. Atoms are from_stride and to_stride numbers apart.
template <class Real>
void copy_columns(int64_t atom_count, int count, const Real* from, int from_stride, double* to, int to_stride,
                  cudaStream_t stream);

// rows[atom][k] += bias[k]
template <class Real>
void add_bias(int64_t atom_count, const Real* bias, Real* rows, int size, cudaStream_t stream);

}  // namespace mlff::equivariant::gpu
