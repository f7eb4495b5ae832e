// SPDX-License-Identifier: MIT
#include "neighbors/shorter_edges.h"

#include <algorithm>
#include <functional>

namespace mlff {
namespace {

constexpr int64_t kAtomsAtOnce = 256;

}  // namespace

const Edges& ShorterEdges::select(const Edges& edges, double cutoff, ThreadTeam& team) {
    const int64_t atom_count = edges.atom_count, chunk_count = (atom_count + kAtomsAtOnce - 1) / kAtomsAtOnce;
    const auto for_each_atom = [&](const auto& visit) {
        const auto visit_chunk = [&](int64_t chunk, int) {
            const int64_t end = std::min(atom_count, (chunk + 1) * kAtomsAtOnce);
            for (int64_t atom = chunk * kAtomsAtOnce; atom < end; ++atom) visit(atom);
        };
        team.run(chunk_count, std::ref(visit_chunk));
    };
    // |vector|^2 < cutoff^2 as a search of this cutoff decides, so that the edges are those it would find.
    const auto is_within = [&](int64_t edge) {
        const double* v = edges.vector + 3 * edge;
        return squared_length({v[0], v[1], v[2]}) < cutoff * cutoff;
    };
    first_.resize_discard(static_cast<size_t>(atom_count) + 1);
    first_[0] = 0;
    for_each_atom([&](int64_t atom) {
        int64_t count = 0;
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) count += is_within(edge) ? 1 : 0;
        first_[static_cast<size_t>(atom) + 1] = count;
    });
    for (size_t atom = 0; atom < static_cast<size_t>(atom_count); ++atom) first_[atom + 1] += first_[atom];
    const auto edge_count = static_cast<size_t>(first_[static_cast<size_t>(atom_count)]);
    sender_.resize_discard(edge_count);
    vector_.resize_discard(3 * edge_count);
    distance_.resize_discard(edge_count);
    if (edges.reverse) new_index_.resize_discard(static_cast<size_t>(edges.edge_count));
    if (edges.reverse) reverse_.resize_discard(edge_count);
    for_each_atom([&](int64_t atom) {
        auto next = static_cast<size_t>(first_[static_cast<size_t>(atom)]);
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            if (!is_within(edge)) continue;
            if (edges.reverse) new_index_[static_cast<size_t>(edge)] = static_cast<int64_t>(next);
            if (edges.reverse) reverse_[next] = edges.reverse[edge];
            sender_[next] = edges.sender[edge];
            std::copy_n(edges.vector + 3 * edge, 3, vector_.data() + 3 * next);
            distance_[next++] = edges.distance[edge];
        }
    });
    if (edges.reverse)  // an edge and its reverse are equally long: both are within or none
        for_each_atom([&](int64_t atom) {
            for (int64_t edge = first_[static_cast<size_t>(atom)]; edge < first_[static_cast<size_t>(atom) + 1];
                 ++edge) {
                int64_t& reverse = reverse_[static_cast<size_t>(edge)];
                reverse = new_index_[static_cast<size_t>(reverse)];
            }
        });
    edges_ = {atom_count,       static_cast<int64_t>(edge_count),
              first_.data(),    sender_.data(),
              nullptr,          vector_.data(),
              distance_.data(), edges.reverse ? reverse_.data() : nullptr};
    return edges_;
}

}  // namespace mlff
