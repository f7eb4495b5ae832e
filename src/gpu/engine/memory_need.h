// SPDX-License-Identifier: MIT
// Checks whether an evaluation fits in the memory of the GPU. Does not depend on CUDA.
#pragma once

#include <cstdint>

namespace mlff::gpu {

struct MemoryNeed {
    int64_t atom_count = 0;
    int64_t edge_count = 0;  // edges to reserve memory for, with those of the skin; 0: not known yet
    int64_t bytes = 0;
};
struct MemoryThere {
    int64_t bytes = 0;
    bool is_limit = false;  // true: a limit set by the user; false: what is free
};

// How much of the free memory may be used. Allocations are rounded up, and graphs need some too.
int64_t usable_bytes(int64_t free_bytes);

// Throws Error{memory} that says how much is needed and how many atoms would fit.
void check_memory(const MemoryNeed& need, const MemoryThere& there);

}  // namespace mlff::gpu
