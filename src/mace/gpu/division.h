// SPDX-License-Identifier: MIT
// Division of messages by a number that depends on the density of the atom's neighbours.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "mace/gpu/engine_names.h"

namespace mlff::mace::gpu {

// divisors[atom] = constant + by_density densities[atom];  rows /= divisor
template <class Real>
void divide_rows(int64_t atom_count, Real constant, Real by_density, const Real* densities, Real* divisors, Real* rows,
                 int size, cudaStream_t stream);

// densities_gradient[atom] = -by_density (a[atom] . b[atom]) / divisor;  rows /= divisor. Constant divisors need
// neither: they are part of the maps of messages.
template <class Real>
void reverse_division(int64_t atom_count, Real by_density, const Real* a, const Real* b, int dot_size,
                      const Real* divisors, Real* densities_gradient, Real* rows, int size, cudaStream_t stream);

}  // namespace mlff::mace::gpu
