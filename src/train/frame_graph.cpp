// SPDX-License-Identifier: MIT
#include "train/frame_graph.h"

#include <cmath>

#include "train/repulsion.h"

namespace mlff::train {
namespace {

NeighborOptions options_for(double cutoff) {
    NeighborOptions options;
    options.cutoff = cutoff;
    options.want_shifts = false;
    options.want_distances = false;
    options.want_reverse = true;
    return options;
}

}  // namespace

GraphMaker::GraphMaker(double cutoff) : team_(1), list_(options_for(cutoff)) {}

FrameGraph GraphMaker::make(const SystemView& system) {
    list_.update(system, team_);
    const Edges& edges = list_.edges();
    FrameGraph graph;
    graph.sender.assign(edges.sender, edges.sender + edges.edge_count);
    graph.vectors.assign(edges.vector, edges.vector + 3 * edges.edge_count);
    graph.reverse.assign(edges.reverse, edges.reverse + edges.edge_count);
    graph.receiver.reserve(static_cast<size_t>(edges.edge_count));
    for (int64_t atom = 0; atom < edges.atom_count; ++atom)
        graph.receiver.insert(graph.receiver.end(), static_cast<size_t>(edges.first[atom + 1] - edges.first[atom]),
                              static_cast<int32_t>(atom));
    return graph;
}

FrameRepulsion frame_repulsion(const SystemView& system, const FrameGraph& graph,
                               const std::vector<double>& radius_of) {
    FrameRepulsion result;
    result.atom_energies.assign(static_cast<size_t>(system.atom_count), 0.0);
    result.forces.assign(static_cast<size_t>(3 * system.atom_count), 0.0);
    if (radius_of.empty()) return result;
    for (size_t edge = 0; edge < graph.sender.size(); ++edge) {
        const auto i = static_cast<size_t>(graph.receiver[edge]), j = static_cast<size_t>(graph.sender[edge]);
        const double* r = &graph.vectors[3 * edge];
        const double distance = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
        const PairTerm pair =
            repulsion(system.atomic_numbers[i], system.atomic_numbers[j], radius_of[i] + radius_of[j], distance);
        if (pair.energy == 0 && pair.slope == 0) continue;
        // A pair is two edges, so each counts half.
        result.energy += 0.5 * pair.energy;
        result.atom_energies[i] += 0.5 * pair.energy;
        for (size_t k = 0; k < 3; ++k) {
            const double gradient = 0.5 * pair.slope * r[k] / distance;
            result.forces[3 * i + k] += gradient;
            result.forces[3 * j + k] -= gradient;
            for (size_t l = 0; l < 3; ++l) result.virial[3 * l + k] += r[l] * gradient;
        }
    }
    return result;
}

double volume_of(const Mat3& cell) {
    const auto& [a, b, c] = cell;
    return std::abs(a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
                    a[2] * (b[0] * c[1] - b[1] * c[0]));
}

}  // namespace mlff::train
