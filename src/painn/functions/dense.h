// SPDX-License-Identifier: MIT
// Dense layers and their activation, forward and reverse.
#pragma once

#include <cmath>

#include "painn/weights/weights.h"

namespace mlff::painn {

inline double silu(double x) { return x / (1 + std::exp(-x)); }
inline double silu_slope(double x) {
    const double sigmoid = 1 / (1 + std::exp(-x));
    return sigmoid * (1 + x * (1 - sigmoid));
}

// out = weight in + bias
void compute_linear(const Linear& linear, const double* in, double* out);
// in_gradient += weight^T out_gradient
void reverse_linear(const Linear& linear, const double* out_gradient, double* in_gradient);

// out = output(silu(hidden(in)))
void compute_two_layers(const Linear& hidden, const Linear& output, const double* in, double* out);
// Adds the gradient with respect to `in`.
void reverse_two_layers(const Linear& hidden, const Linear& output, const double* in, const double* out_gradient,
                        double* in_gradient);

}  // namespace mlff::painn
