// SPDX-License-Identifier: MIT
// Edges from a neighbour list given by the caller. Every periodic image is an atom of its own (a ghost).
#pragma once

#include "core/buffer.h"
#include "core/threads.h"
#include "neighbors/neighbor_list.h"

namespace mlff {

struct ListedNeighbors {
    int64_t receiver_count = 0;          // the first atoms receive edges; the others have none
    const int64_t* first = nullptr;      // [receiver_count + 1]
    const int32_t* neighbors = nullptr;  // atom i has entries first[i] ... first[i + 1] - 1
};

// Throws Error{argument} for a malformed list, or one that names atoms that do not exist.
void check_listed_neighbors(int64_t atom_count, const ListedNeighbors& list);
// Throws Error{argument} if only one of two receivers lists the other. The list must have been checked.
void check_both_ways(const ListedNeighbors& list);

class ListedEdges {
public:
    // Keeps the candidates within the cutoff, in their order. Makes the checks above, and throws Error{system} for two
    // atoms at the same place. The edges are valid until the next call.
    const Edges& select(int64_t atom_count, const double* positions, const ListedNeighbors& list, double cutoff,
                        ThreadTeam& team);

private:
    Edges edges_;
    Buffer<int64_t> first_;
    Buffer<int32_t> sender_;
    Buffer<double> vector_, distance_;
};

}  // namespace mlff
