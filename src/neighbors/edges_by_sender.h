// SPDX-License-Identifier: MIT
// Edges regrouped by sender, for passes that gather what an atom sends. (Edges themselves are grouped by receiver.)
#pragma once

#include <cstdint>
#include <vector>

#include "neighbors/neighbor_list.h"

namespace mlff {

struct EdgesBySender {
    std::vector<int64_t> receiver;    // [edge]
    std::vector<int64_t> first_sent;  // [atom + 1]: an atom sends the edges sent[first_sent[atom]] ...
    std::vector<int64_t> sent;        // [edge]
};

void index_by_sender(const Edges& edges, EdgesBySender& index);

}  // namespace mlff
