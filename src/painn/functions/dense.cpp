// SPDX-License-Identifier: MIT
#include "painn/functions/dense.h"

namespace mlff::painn {

void compute_linear(const Linear& linear, const double* in, double* out) {
    const auto in_width = static_cast<size_t>(linear.in_width), out_width = static_cast<size_t>(linear.out_width);
    for (size_t o = 0; o < out_width; ++o) {
        double sum = linear.bias.empty() ? 0 : linear.bias[o];
        for (size_t i = 0; i < in_width; ++i) sum += linear.weight[o * in_width + i] * in[i];
        out[o] = sum;
    }
}

void reverse_linear(const Linear& linear, const double* out_gradient, double* in_gradient) {
    const auto in_width = static_cast<size_t>(linear.in_width), out_width = static_cast<size_t>(linear.out_width);
    for (size_t o = 0; o < out_width; ++o)
        for (size_t i = 0; i < in_width; ++i) in_gradient[i] += linear.weight[o * in_width + i] * out_gradient[o];
}

void compute_two_layers(const Linear& hidden, const Linear& output, const double* in, double* out) {
    std::vector<double> middle(static_cast<size_t>(hidden.out_width));
    compute_linear(hidden, in, middle.data());
    for (double& value : middle) value = silu(value);
    compute_linear(output, middle.data(), out);
}

void reverse_two_layers(const Linear& hidden, const Linear& output, const double* in, const double* out_gradient,
                        double* in_gradient) {
    std::vector<double> middle(static_cast<size_t>(hidden.out_width)), middle_gradient(middle.size(), 0.0);
    compute_linear(hidden, in, middle.data());
    reverse_linear(output, out_gradient, middle_gradient.data());
    for (size_t i = 0; i < middle.size(); ++i) middle_gradient[i] *= silu_slope(middle[i]);
    reverse_linear(hidden, middle_gradient.data(), in_gradient);
}

}  // namespace mlff::painn
