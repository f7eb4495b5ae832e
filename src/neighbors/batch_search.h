// SPDX-License-Identifier: MIT
// The edges of many small systems as one list, searched by all threads: each system by one of them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "neighbors/neighbor_list.h"

namespace mlff {

class BatchSearch {
public:
    explicit BatchSearch(const NeighborOptions& options);  // with vectors and distances; a skin is not used

    // Called for the edges of each system, on any thread; what it throws is thrown by find().
    using Check = std::function<void(size_t system, const Edges& edges)>;
    // Throws the error of the first system that has one; the list is then empty.
    void find(std::span<const SystemView> systems, const Check& check, ThreadTeam& team);

    // Atoms and edges have one index range across the systems. Valid until the next find().
    const Edges& edges() const { return edges_; }

private:
    struct Searcher {
        NeighborList list;
        ThreadTeam team{1};
        explicit Searcher(const NeighborOptions& options) : list(options) {}
    };
    struct Arrays {
        Buffer<int64_t> first, reverse;
        Buffer<int32_t> sender;
        Buffer<double> vector, distance;
        void resize(int64_t atoms, int64_t edges);
        // Another list, with its numbers of atoms and edges increased.
        void put(const Edges& edges, int64_t first_atom, int64_t first_edge);
    };
    Edges view(const Arrays& arrays, int64_t atoms, int64_t edges) const;

    NeighborOptions options_;
    std::vector<std::unique_ptr<Searcher>> searchers_;  // [worker]
    std::vector<Arrays> found_;                         // [system]
    Arrays joined_;
    Edges edges_;
};

}  // namespace mlff
