// SPDX-License-Identifier: MIT
// The sums of the messages that atoms receive in one layer. See `EdgeMessages` for the formulas; edge networks depend
// on the distance alone.
#pragma once

#include <vector>

#include "core/threads.h"
#include "equivariant/edge_messages.h"
#include "equivariant/reference/edge_data.h"

namespace mlff::nequip::reference {

// Data of the forward pass for the reverse pass.
struct MessageState {
    std::vector<double> up;            // g = up(h), [atom][...]
    std::vector<double> edge_weights;  // [edge][weight_count], with the cutoff and the power of the distance
};

// features: h, [atom][up.in.dimension()]; sum: [atom][convolution.out.dimension()], resized here.
void compute_messages(const EdgeMessages& messages, const EdgeData& edges, const double* features, MessageState& state,
                      std::vector<double>& sum, ThreadTeam& team);

// Adds gradients of the edges to `edges`, and those of h to features_gradient unless it is nullptr.
void reverse_messages(const EdgeMessages& messages, const MessageState& state, const double* sum_gradient,
                      EdgeData& edges, double* features_gradient, ThreadTeam& team);

}  // namespace mlff::nequip::reference
