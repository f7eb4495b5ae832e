// SPDX-License-Identifier: MIT
// Those of a list's edges that are within a shorter cutoff: for sums of terms with cutoffs of their own.
#pragma once

#include "core/buffer.h"
#include "core/threads.h"
#include "neighbors/neighbor_list.h"

namespace mlff {

class ShorterEdges {
public:
    // In the order of `edges`, with vectors and distances, and reverse edges if those are there. Shifts are left out.
    // They live until the next call.
    const Edges& select(const Edges& edges, double cutoff, ThreadTeam& team);

private:
    Edges edges_;
    Buffer<int64_t> first_, reverse_, new_index_;
    Buffer<int32_t> sender_;
    Buffer<double> vector_, distance_;
};

}  // namespace mlff
