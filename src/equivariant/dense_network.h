// SPDX-License-Identifier: MIT
// Dense networks, and their evaluation on one vector.
#pragma once

#include <vector>

#include "equivariant/activation.h"

namespace mlff {

// y = activation(norm(x weight + bias)); norm(x) = (x - mean) / sqrt(variance + epsilon) * norm_scale + norm_offset
struct DenseLayer {
    int in_width = 0;
    int out_width = 0;
    std::vector<double> weight;       // [in_width][out_width]
    std::vector<double> bias;         // [out_width], or empty
    std::vector<double> norm_scale;   // [out_width], or empty: no normalisation
    std::vector<double> norm_offset;  // [out_width]
    double norm_epsilon = 0;
    Activation activation;
};

struct DenseNetwork {
    std::vector<DenseLayer> layers;  // never empty

    int in_width() const { return layers.front().in_width; }
    int out_width() const { return layers.back().out_width; }
};

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

}  // namespace mlff
