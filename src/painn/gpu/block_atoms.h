// SPDX-License-Identifier: MIT
// The atoms that a block of threads, or a cluster of blocks, works on. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::painn::gpu {

// A row for each. Rows beyond the last atom are computed like the last, and not written.
struct BlockAtoms {
    int64_t first_atom, atom_count;

    __device__ int64_t clamped_atom(int row) const { return min(first_atom + row, atom_count - 1); }
    __device__ bool has(int row) const { return first_atom + row < atom_count; }
};

}  // namespace mlff::painn::gpu
