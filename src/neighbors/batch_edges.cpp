// SPDX-License-Identifier: MIT
#include "neighbors/batch_edges.h"

namespace mlff {

void BatchEdges::clear() {
    first_.assign(1, 0);
    sender_.clear();
    reverse_.clear();
    vector_.clear();
    distance_.clear();
}

void BatchEdges::append(const Edges& edges) {
    const auto first_atom = static_cast<int32_t>(first_.size() - 1);
    const int64_t first_edge = first_.back();
    for (int64_t atom = 0; atom < edges.atom_count; ++atom) first_.push_back(first_edge + edges.first[atom + 1]);
    for (int64_t edge = 0; edge < edges.edge_count; ++edge) sender_.push_back(first_atom + edges.sender[edge]);
    if (edges.reverse)
        for (int64_t edge = 0; edge < edges.edge_count; ++edge) reverse_.push_back(first_edge + edges.reverse[edge]);
    vector_.insert(vector_.end(), edges.vector, edges.vector + 3 * edges.edge_count);
    distance_.insert(distance_.end(), edges.distance, edges.distance + edges.edge_count);
}

Edges BatchEdges::edges() const {
    Edges edges;
    edges.atom_count = static_cast<int64_t>(first_.size()) - 1;
    edges.edge_count = first_.back();
    edges.first = first_.data();
    edges.sender = sender_.data();
    edges.vector = vector_.data();
    edges.distance = distance_.data();
    edges.reverse = reverse_.empty() ? nullptr : reverse_.data();
    return edges;
}

}  // namespace mlff
