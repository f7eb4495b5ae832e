// SPDX-License-Identifier: MIT
// The edges of a batch of systems as one list. Atoms and edges have one index range across the batch.
#pragma once

#include <vector>

#include "neighbors/neighbor_list.h"

namespace mlff {

class BatchEdges {
public:
    void clear();
    void append(const Edges& edges);  // needs vectors and distances; reverse edges in all systems or in none
    Edges edges() const;              // valid until the next change

private:
    std::vector<int64_t> first_ = {0};
    std::vector<int32_t> sender_;
    std::vector<int64_t> reverse_;
    std::vector<double> vector_, distance_;
};

}  // namespace mlff
