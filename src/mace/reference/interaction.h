// SPDX-License-Identifier: MIT
// The interaction of one layer: messages from neighbours are summed, scaled and mixed. See `Interaction` for the
// formulas.
#pragma once

#include <vector>

#include "equivariant/reference/edge_data.h"
#include "mace/weights/weights.h"

namespace mlff::mace::reference {

// Data of the forward pass for the reverse pass; all [atom][...] except edge_weights.
struct InteractionState {
    std::vector<double> up;            // g = up(h)
    std::vector<double> down;          // down(h), the features in the network inputs, if any
    std::vector<double> edge_weights;  // [edge][weight_count], cutoff included
    std::vector<double> divisor;       // [atom]
    std::vector<double> scaled;        // message(sum) / divisor
    std::vector<double> gate_input;
    std::vector<double> basis;  // m: the input of the contraction
};

// features: h, [atom][up.in.dimension()]
void compute_interaction(const Interaction& interaction, const EdgeData& edges, const double* features,
                         InteractionState& state, ThreadTeam& team);

// Adds gradients of the edges to `edges`, and those of h to features_gradient unless it is nullptr.
void reverse_interaction(const Interaction& interaction, const InteractionState& state, const double* basis_gradient,
                         EdgeData& edges, double* features_gradient, ThreadTeam& team);

}  // namespace mlff::mace::reference
