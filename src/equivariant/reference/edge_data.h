// SPDX-License-Identifier: MIT
// Per-edge data that does not depend on the layers: harmonics of the direction, radial functions of the length.
#pragma once

#include <cstdint>
#include <vector>

#include "core/threads.h"
#include "equivariant/edge_messages.h"
#include "neighbors/edges_by_sender.h"

namespace mlff {

struct EdgeData : EdgesBySender {
    const Edges* list = nullptr;
    const int* elements = nullptr;  // [atom]
    size_t harmonic_count = 0;
    size_t basis_count = 0;
    std::vector<double> harmonics;  // [edge][harmonic_count]
    std::vector<double> basis;      // [edge][basis_count]
    std::vector<double> cutoff;     // [edge]; 1 if the basis already contains it
    std::vector<double> harmonics_gradient;
    std::vector<double> basis_gradient;
    std::vector<double> cutoff_gradient;
    std::vector<double> distance_gradient;  // [edge], the part that does not pass through the basis (pair repulsion)
};

// Fills in everything, and zeroes the gradients. MACE takes harmonics of the vector from neighbour to centre, which is
// minus the vector of our edge.
void compute_edges(const EdgeModel& model, const Edges& edges, const int* elements, EdgeData& data, ThreadTeam& team);

// vector_gradient[edge][3] = dE / d(vector of our edge), from the gradients in `data`.
void reverse_edges(const EdgeModel& model, const EdgeData& data, std::vector<double>& vector_gradient,
                   ThreadTeam& team);

}  // namespace mlff
