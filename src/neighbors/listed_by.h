// SPDX-License-Identifier: MIT
// The other direction of a list of neighbours, for atoms that have no list of their own: which atoms list them.
#pragma once

#include "core/buffer.h"
#include "neighbors/listed_edges.h"

namespace mlff {

class ListedBy {
public:
    // For atoms from list.receiver_count on. The list has been checked.
    void find(int64_t atom_count, const ListedNeighbors& list);

    int64_t count() const { return first_.empty() ? 0 : first_[first_.size() - 1]; }
    const Buffer<int64_t>& first() const { return first_; }          // [atom - receiver_count], and the end
    const Buffer<int32_t>& neighbors() const { return neighbors_; }  // of each in ascending order

private:
    Buffer<int64_t> first_;
    Buffer<int32_t> neighbors_;
};

}  // namespace mlff
