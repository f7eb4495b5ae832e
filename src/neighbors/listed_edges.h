// SPDX-License-Identifier: MIT
// Edges from candidates that the caller has found: every image of an atom is an atom of its own.
#pragma once

#include "core/buffer.h"
#include "core/threads.h"
#include "neighbors/neighbor_list.h"

namespace mlff {

struct ListedNeighbors {
    int64_t receiver_count = 0;          // the first atoms; others have no edges
    const int64_t* first = nullptr;      // [receiver_count + 1]
    const int32_t* neighbors = nullptr;  // those of atom i: first[i] ... first[i + 1] - 1
};

// Throws Error{argument} for a list that is none or names atoms that do not exist.
void check_listed_neighbors(int64_t atom_count, const ListedNeighbors& list);
// Throws Error{argument} for a pair of receivers that only one of the two lists. The list has been checked.
void check_both_ways(const ListedNeighbors& list);

class ListedEdges {
public:
    // The candidates within the cutoff, in their order. Makes the checks above; throws Error{system} for two atoms at
    // the same place. The edges live until the next call.
    const Edges& select(int64_t atom_count, const double* positions, const ListedNeighbors& list, double cutoff,
                        ThreadTeam& team);

private:
    Edges edges_;
    Buffer<int64_t> first_;
    Buffer<int32_t> sender_;
    Buffer<double> vector_, distance_;
};

}  // namespace mlff
