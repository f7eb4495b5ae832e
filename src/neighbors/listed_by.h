// SPDX-License-Identifier: MIT
// Inverts a neighbour list, for atoms without a list of their own (ghosts): which atoms list them.
#pragma once

#include "core/buffer.h"
#include "neighbors/listed_edges.h"

namespace mlff {

class ListedBy {
public:
    // For atoms from list.receiver_count on. The list must have been checked.
    void find(int64_t atom_count, const ListedNeighbors& list);

    int64_t count() const { return first_.empty() ? 0 : first_[first_.size() - 1]; }
    const Buffer<int64_t>& first() const { return first_; }          // [atom - receiver_count], plus the end
    const Buffer<int32_t>& neighbors() const { return neighbors_; }  // ascending for each atom

private:
    Buffer<int64_t> first_;
    Buffer<int32_t> neighbors_;
};

}  // namespace mlff
