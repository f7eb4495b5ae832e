// SPDX-License-Identifier: MIT
// One layer: h' = gate(norm(message(sum of messages) + self_connection[element](h))).
#pragma once

#include <vector>

#include "core/threads.h"
#include "equivariant/reference/edge_data.h"
#include "nequip/reference/messages.h"
#include "nequip/weights/weights.h"

namespace mlff::nequip::reference {

// Data of the forward pass for the reverse pass, both [atom][gate.in.dimension()].
struct LayerState {
    MessageState messages;
    std::vector<double> update;      // before the norm
    std::vector<double> gate_input;  // after it; the same if the layer has none
};

// features: h, [atom][up.in.dimension()]; new_features: h', [atom][gate.out.dimension()], resized here.
void compute_layer(const Layer& layer, const EdgeData& edges, const double* features, LayerState& state,
                   std::vector<double>& new_features, ThreadTeam& team);

// Adds gradients of the edges to `edges`, and those of h to features_gradient unless it is nullptr.
void reverse_layer(const Layer& layer, const LayerState& state, const double* new_features_gradient, EdgeData& edges,
                   double* features_gradient, ThreadTeam& team);

}  // namespace mlff::nequip::reference
