// SPDX-License-Identifier: MIT
// Whether an evaluation fits in the memory of the GPU, and what to say if it does not. Knows nothing of CUDA.
#pragma once

#include <cstdint>

namespace mlff::gpu {

struct MemoryNeed {
    int64_t atom_count = 0;
    int64_t edge_count = 0;  // that there is room for, those of the skin included; 0: not known yet
    int64_t bytes = 0;
};
struct MemoryThere {
    int64_t bytes = 0;
    bool is_limit = false;  // set by the user, not by what is free
};

// Of bytes that are free: allocations are rounded up, and graphs need a little.
int64_t usable_bytes(int64_t free_bytes);

// Throws Error{memory} that says how much is needed and how many atoms would fit.
void check_memory(const MemoryNeed& need, const MemoryThere& there);

}  // namespace mlff::gpu
