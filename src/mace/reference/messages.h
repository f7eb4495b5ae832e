// SPDX-License-Identifier: MIT
// The message of one edge to its receiver: the tensor product of the sender's features and the edge's harmonics.
#pragma once

#include "mace/weights/weights.h"

namespace mlff::mace::reference {

// Adds to message_k[u][c]:  weights_k[u] * sum over couplings (a, b, c) of value * features[u][a] * harmonics[b].
void compute_message(const Convolution& convolution, const double* features, const double* harmonics,
                     const double* weights, double* message);
// Overwrites weights_gradient, adds to harmonics_gradient.
void reverse_message_of_edge(const Convolution& convolution, const double* features, const double* harmonics,
                             const double* weights, const double* message_gradient, double* harmonics_gradient,
                             double* weights_gradient);
// Adds to features_gradient.
void reverse_message_of_sender(const Convolution& convolution, const double* harmonics, const double* weights,
                               const double* message_gradient, double* features_gradient);

}  // namespace mlff::mace::reference
