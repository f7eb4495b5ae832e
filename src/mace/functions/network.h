// SPDX-License-Identifier: MIT
// Evaluates a dense network on one vector.
#pragma once

#include <vector>

#include "mace/weights/weights.h"

namespace mlff::mace {

// One forward pass, and the data for its reverse pass.
class NetworkPass {
public:
    explicit NetworkPass(const DenseNetwork& network);

    // Returns the output, [out_width()]; valid until the next call.
    const double* compute(const double* input);
    // input_gradient[i] = sum over outputs o of output_gradient[o] * d output[o] / d input[i], at the last input.
    void reverse(const double* output_gradient, double* input_gradient);

private:
    struct LayerPass {
        std::vector<double> input;
        std::vector<double> normalised;  // (x - mean) / deviation
        std::vector<double> before;      // input of the activation
        std::vector<double> output;
        double deviation = 1;
    };
    const DenseNetwork& network_;
    std::vector<LayerPass> passes_;
};

}  // namespace mlff::mace
