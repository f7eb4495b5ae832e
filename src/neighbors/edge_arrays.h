// SPDX-License-Identifier: MIT
// The arrays behind Edges, filled from a list of pairs.
#pragma once

#include <cstdint>

#include "core/buffer.h"
#include "core/threads.h"
#include "neighbors/neighbor_list.h"
#include "neighbors/pair_search.h"

namespace mlff {

class EdgeArrays {
public:
    Edges fill(const CellList& cells, const PairList& pairs, const Mat3& cell, const NeighborOptions& options,
               ThreadTeam& team);

private:
    void count_edges(const PairList& pairs);
    void find_reverse(int64_t atom_count, ThreadTeam& team);
    int64_t reverse_of(int64_t receiver, int64_t edge) const;

    Buffer<int64_t> first_;
    Buffer<int32_t> sender_;
    Buffer<int32_t> shift_;
    Buffer<double> vector_;
    Buffer<double> distance_;
    Buffer<int64_t> reverse_;
};

}  // namespace mlff
