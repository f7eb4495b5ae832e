// SPDX-License-Identifier: MIT
// Launch shapes: one thread per atom, or a few adjacent threads (a team) per atom.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::gpu {

constexpr int kBlockThreads = 128;

inline int64_t blocks_for(int64_t threads) { return (threads + kBlockThreads - 1) / kBlockThreads; }

__device__ inline int64_t thread_index() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// The threads that share one atom. They process consecutive items, and write the items they keep one after the other,
// so the order of the items is kept.
template <int kThreads>
class Team {
public:
    static int64_t blocks(int64_t atoms) { return blocks_for(kThreads * atoms); }

    __device__ int64_t atom() const { return thread_index() / kThreads; }
    __device__ int rank() const { return static_cast<int>(tile_.thread_rank()); }

    struct Kept {
        int before;  // items kept by lower ranks
        int total;
    };
    // All threads of the team must call these together. A bit for each rank:
    __device__ unsigned which(bool keep) const { return tile_.ballot(keep); }
    __device__ Kept count_kept(bool keep) const {
        const unsigned mask = which(keep);
        return {__popc(mask & ((1u << tile_.thread_rank()) - 1)), __popc(mask)};
    }

private:
    cooperative_groups::thread_block_tile<kThreads> tile_ =
        cooperative_groups::tiled_partition<kThreads>(cooperative_groups::this_thread_block());
};

}  // namespace mlff::gpu
