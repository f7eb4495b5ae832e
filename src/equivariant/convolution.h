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
        int degree = 0;         // of the harmonic
        int out_block = 0;      // of `out`
        int weight_offset = 0;  // of w_k in the edge's weights; one weight for each copy
        std::vector<Coupling> couplings;
    };
    Irreps in;
    Irreps out;  // one block for each path
    int weight_count = 0;
    std::vector<Path> paths;
};

}  // namespace mlff
