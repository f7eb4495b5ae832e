// SPDX-License-Identifier: MIT
// What a readout computes, as plain matrices.
#pragma once

#include <vector>

#include "equivariant/activation.h"

namespace mlff::equivariant::gpu {

// A readout in double precision: energy = last . f(middle f(first x)), or first . x without hidden layers.
struct ReadoutMatrices {
    std::vector<double> first, first_bias;    // [feature][hidden], [hidden]; without hidden layers [feature], [1]
    std::vector<double> middle, middle_bias;  // [hidden][second], [second]; empty: none
    std::vector<double> last;                 // [hidden or second]; empty: no hidden layers
    double last_bias = 0;
    Activation activation;
};

}  // namespace mlff::equivariant::gpu
