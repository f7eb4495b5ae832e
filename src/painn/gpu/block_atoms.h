// SPDX-License-Identifier: MIT
// The atoms of a thread block or of a cluster. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::painn::gpu {

// One row for each atom. Rows beyond the last atom repeat the last one, and are not written.
struct BlockAtoms {
    int64_t first_atom, atom_count;

    __device__ int64_t clamped_atom(int row) const { return min(first_atom + row, atom_count - 1); }
    __device__ bool has(int row) const { return first_atom + row < atom_count; }
};

}  // namespace mlff::painn::gpu
