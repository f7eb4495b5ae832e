// SPDX-License-Identifier: MIT
#include "neighbors/edges_by_sender.h"

namespace mlff {

void index_by_sender(const Edges& edges, EdgesBySender& index) {
    index.receiver.resize(static_cast<size_t>(edges.edge_count));
    index.first_sent.assign(static_cast<size_t>(edges.atom_count) + 1, 0);
    for (int64_t atom = 0; atom < edges.atom_count; ++atom)
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            index.receiver[static_cast<size_t>(edge)] = atom;
            ++index.first_sent[static_cast<size_t>(edges.sender[edge]) + 1];
        }
    for (size_t atom = 1; atom < index.first_sent.size(); ++atom) index.first_sent[atom] += index.first_sent[atom - 1];
    index.sent.resize(index.receiver.size());
    std::vector<int64_t> next(index.first_sent.begin(), index.first_sent.end() - 1);
    for (int64_t edge = 0; edge < edges.edge_count; ++edge)
        index.sent[static_cast<size_t>(next[static_cast<size_t>(edges.sender[edge])]++)] = edge;
}

}  // namespace mlff
