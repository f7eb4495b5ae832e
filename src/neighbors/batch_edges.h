// SPDX-License-Identifier: MIT
// The edges of several systems as one list, atoms and edges numbered through.
#pragma once

#include <vector>

#include "neighbors/neighbor_list.h"

namespace mlff {

class BatchEdges {
public:
    void clear();
    void append(const Edges& edges);  // with vectors and distances, and reverse edges in all or in none
    Edges edges() const;              // valid until the next change

private:
    std::vector<int64_t> first_ = {0};
    std::vector<int32_t> sender_;
    std::vector<int64_t> reverse_;
    std::vector<double> vector_, distance_;
};

}  // namespace mlff
