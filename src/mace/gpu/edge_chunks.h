// SPDX-License-Identifier: MIT
// How edges are cut into chunks where scratch memory does not hold all of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/error.h"

namespace mlff::mace::gpu {

struct EdgeChunks {
    int64_t count = 0;  // at least one, also without edges
    int64_t size = 0;   // edges of each, a multiple of the tile and more than zero
};

// Chunks of nearly equal size that cover `edge_capacity` edges, none larger than `most`.
inline EdgeChunks plan_edge_chunks(int64_t edge_capacity, int64_t most, int64_t tile) {
    most = most / tile * tile;
    if (most < tile) fail(Status::internal, "no scratch memory for messages");
    const int64_t edges = std::max<int64_t>(edge_capacity, 1), count = (edges + most - 1) / most;
    return {count, ((edges + count - 1) / count + tile - 1) / tile * tile};
}

}  // namespace mlff::mace::gpu
