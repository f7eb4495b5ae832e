// SPDX-License-Identifier: MIT
// Divides edges into chunks that fit in scratch memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/error.h"

namespace mlff::equivariant::gpu {

struct EdgeChunks {
    int64_t count = 0;  // at least one, even without edges
    int64_t size = 0;   // edges per chunk; a positive multiple of the tile
};

// Chunks of nearly equal size that cover `edge_capacity` edges, none larger than `most`.
inline EdgeChunks plan_edge_chunks(int64_t edge_capacity, int64_t most, int64_t tile) {
    most = most / tile * tile;
    if (most < tile) fail(Status::internal, "no scratch memory for messages");
    const int64_t edges = std::max<int64_t>(edge_capacity, 1), count = (edges + most - 1) / most;
    return {count, ((edges + count - 1) / count + tile - 1) / tile * tile};
}

}  // namespace mlff::equivariant::gpu
