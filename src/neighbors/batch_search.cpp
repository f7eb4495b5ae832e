// SPDX-License-Identifier: MIT
#include "neighbors/batch_search.h"

#include <algorithm>
#include <exception>

namespace mlff {

void BatchSearch::Arrays::resize(int64_t atoms, int64_t edges) {
    const auto count = static_cast<size_t>(edges);
    first.resize_discard(static_cast<size_t>(atoms) + 1);
    sender.resize_discard(count);
    reverse.resize_discard(count);
    vector.resize_discard(3 * count);
    distance.resize_discard(count);
    first[static_cast<size_t>(atoms)] = edges;
}

void BatchSearch::Arrays::put(const Edges& edges, int64_t first_atom, int64_t first_edge) {
    const auto atom = static_cast<size_t>(first_atom), edge = static_cast<size_t>(first_edge);
    const auto atom_count = static_cast<size_t>(edges.atom_count), edge_count = static_cast<size_t>(edges.edge_count);
    for (size_t i = 0; i < atom_count; ++i) first[atom + i] = first_edge + edges.first[i];
    for (size_t i = 0; i < edge_count; ++i) sender[edge + i] = static_cast<int32_t>(first_atom) + edges.sender[i];
    for (size_t i = 0; edges.reverse && i < edge_count; ++i) reverse[edge + i] = first_edge + edges.reverse[i];
    std::copy_n(edges.vector, 3 * edge_count, vector.data() + 3 * edge);
    std::copy_n(edges.distance, edge_count, distance.data() + edge);
}

Edges BatchSearch::view(const Arrays& arrays, int64_t atoms, int64_t edges) const {
    Edges view;
    view.atom_count = atoms;
    view.edge_count = edges;
    view.first = arrays.first.data();
    view.sender = arrays.sender.data();
    view.vector = arrays.vector.data();
    view.distance = arrays.distance.data();
    view.reverse = options_.want_reverse ? arrays.reverse.data() : nullptr;
    return view;
}

BatchSearch::BatchSearch(const NeighborOptions& options) : options_(options) { options_.skin = 0; }

void BatchSearch::find(std::span<const SystemView> systems, const Check& check, ThreadTeam& team) {
    edges_ = {};
    const auto count = static_cast<int64_t>(systems.size());
    searchers_.resize(std::max(searchers_.size(), static_cast<size_t>(team.size())));
    found_.resize(std::max(found_.size(), systems.size()));
    std::vector<int64_t> edge_counts(systems.size());
    std::vector<std::exception_ptr> problems(systems.size());
    team.run(count, [&](int64_t chunk, int worker) {
        const auto system = static_cast<size_t>(chunk);
        try {
            auto& searcher = searchers_[static_cast<size_t>(worker)];
            if (!searcher) searcher = std::make_unique<Searcher>(options_);
            searcher->list.update(systems[system], searcher->team);
            const Edges& edges = searcher->list.edges();
            check(system, edges);
            edge_counts[system] = edges.edge_count;
            found_[system].resize(edges.atom_count, edges.edge_count);
            found_[system].put(edges, 0, 0);
        } catch (...) {
            problems[system] = std::current_exception();
        }
    });
    for (const std::exception_ptr& problem : problems)
        if (problem) std::rethrow_exception(problem);

    std::vector<int64_t> first_atoms(systems.size() + 1), first_edges(systems.size() + 1);
    for (size_t i = 0; i < systems.size(); ++i) {
        first_atoms[i + 1] = first_atoms[i] + systems[i].atom_count;
        first_edges[i + 1] = first_edges[i] + edge_counts[i];
    }
    joined_.resize(first_atoms.back(), first_edges.back());
    team.run(count, [&](int64_t chunk, int) {
        const auto system = static_cast<size_t>(chunk);
        joined_.put(view(found_[system], systems[system].atom_count, edge_counts[system]), first_atoms[system],
                    first_edges[system]);
    });
    edges_ = view(joined_, first_atoms.back(), first_edges.back());
}

}  // namespace mlff
