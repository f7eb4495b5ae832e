// SPDX-License-Identifier: MIT
// Edges are grouped by receiver; this is the same list by sender, for passes that gather what an atom sends.
#pragma once

#include <cstdint>
#include <vector>

#include "neighbors/neighbor_list.h"

namespace mlff {

struct EdgesBySender {
    std::vector<int64_t> receiver;    // [edge]
    std::vector<int64_t> first_sent;  // [atom + 1]: the edges that an atom sends are sent[first_sent[atom]] ...
    std::vector<int64_t> sent;        // [edge]
};

void index_by_sender(const Edges& edges, EdgesBySender& index);

}  // namespace mlff
