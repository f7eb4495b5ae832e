// SPDX-License-Identifier: MIT
// The tensor product of features and spherical harmonics, path by path.
#pragma once

#include <vector>

#include "equivariant/irreps.h"

namespace mlff {

// Tensor product of sender features and harmonics: path k gives
//   out_k[u][c] = w_k[u] * sum over couplings (a, b, c) of value * in[u][a] * Y[b].
struct Convolution {
    struct Coupling {
        int in = 0;        // component of the feature
        int harmonic = 0;  // index l^2 + l + m
        int out = 0;       // component of the message
        double value = 0;  // sqrt(2l+1) times the 3j symbol
    };
    struct Path {
        int in_block = 0;
        int degree = 0;          // of the harmonic
        int out_block = 0;       // of `out`
        int weight_offset = 0;   // of w_k in the edge's weights; one weight for each copy
        int distance_power = 0;  // w_k is that of the network times the distance to this power
        std::vector<Coupling> couplings;
    };
    Irreps in;
    Irreps out;  // one block for each path
    int weight_count = 0;
    std::vector<Path> paths;
};

// The message of one edge to its receiver. Adds to message_k[u][c]:  weights_k[u] * sum over couplings (a, b, c) of
// value * features[u][a] * harmonics[b].
void compute_message(const Convolution& convolution, const double* features, const double* harmonics,
                     const double* weights, double* message);
// Overwrites weights_gradient, adds to harmonics_gradient.
void reverse_message_of_edge(const Convolution& convolution, const double* features, const double* harmonics,
                             const double* weights, const double* message_gradient, double* harmonics_gradient,
                             double* weights_gradient);
// Adds to features_gradient.
void reverse_message_of_sender(const Convolution& convolution, const double* harmonics, const double* weights,
                               const double* message_gradient, double* features_gradient);

}  // namespace mlff
