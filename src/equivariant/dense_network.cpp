// SPDX-License-Identifier: MIT
#include "equivariant/dense_network.h"

#include <cmath>

namespace mlff {
namespace {

// x W + b
void compute_affine(const DenseLayer& layer, const std::vector<double>& input, std::vector<double>& output) {
    const auto width = static_cast<size_t>(layer.out_width);
    output.assign(width, 0.0);
    for (size_t in = 0; in < input.size(); ++in)
        for (size_t out = 0; out < width; ++out) output[out] += input[in] * layer.weight[in * width + out];
    for (size_t out = 0; out < layer.bias.size(); ++out) output[out] += layer.bias[out];
}

void reverse_affine(const DenseLayer& layer, const std::vector<double>& output_gradient, double* input_gradient) {
    const auto width = static_cast<size_t>(layer.out_width);
    for (size_t in = 0; in < static_cast<size_t>(layer.in_width); ++in) {
        double sum = 0;
        for (size_t out = 0; out < width; ++out) sum += output_gradient[out] * layer.weight[in * width + out];
        input_gradient[in] = sum;
    }
}

// n = (x - mean) / s, s = sqrt(mean of (x - mean)^2 + epsilon); y = n * scale + offset. Returns s; x becomes y.
double compute_norm(const DenseLayer& layer, std::vector<double>& values, std::vector<double>& normalised) {
    const auto count = static_cast<double>(values.size());
    double mean = 0, variance = 0;
    for (double value : values) mean += value / count;
    for (double value : values) variance += (value - mean) * (value - mean) / count;
    const double deviation = std::sqrt(variance + layer.norm_epsilon);
    normalised.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
        normalised[i] = (values[i] - mean) / deviation;
        values[i] = normalised[i] * layer.norm_scale[i] + layer.norm_offset[i];
    }
    return deviation;
}

// With g = dE/dn:  dE/dx = (g - mean(g) - n mean(g n)) / s.  gradient: dE/dy on entry, dE/dx on return.
void reverse_norm(const DenseLayer& layer, const std::vector<double>& normalised, double deviation,
                  std::vector<double>& gradient) {
    const auto count = static_cast<double>(gradient.size());
    double mean = 0, projection = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
        gradient[i] *= layer.norm_scale[i];
        mean += gradient[i] / count;
        projection += gradient[i] * normalised[i] / count;
    }
    for (size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = (gradient[i] - mean - normalised[i] * projection) / deviation;
}

}  // namespace

NetworkPass::NetworkPass(const DenseNetwork& network) : network_(network), passes_(network.layers.size()) {}

const double* NetworkPass::compute(const double* input) {
    for (size_t k = 0; k < passes_.size(); ++k) {
        const DenseLayer& layer = network_.layers[k];
        LayerPass& pass = passes_[k];
        const double* from = k == 0 ? input : passes_[k - 1].output.data();
        pass.input.assign(from, from + layer.in_width);
        compute_affine(layer, pass.input, pass.before);
        if (!layer.norm_scale.empty()) pass.deviation = compute_norm(layer, pass.before, pass.normalised);
        pass.output.resize(pass.before.size());
        for (size_t i = 0; i < pass.before.size(); ++i) pass.output[i] = activate(layer.activation, pass.before[i]);
    }
    return passes_.back().output.data();
}

void NetworkPass::reverse(const double* output_gradient, double* input_gradient) {
    std::vector<double> gradient(output_gradient, output_gradient + network_.out_width());
    for (size_t k = passes_.size(); k-- > 0;) {
        const DenseLayer& layer = network_.layers[k];
        const LayerPass& pass = passes_[k];
        for (size_t i = 0; i < gradient.size(); ++i) gradient[i] *= activation_slope(layer.activation, pass.before[i]);
        if (!layer.norm_scale.empty()) reverse_norm(layer, pass.normalised, pass.deviation, gradient);
        std::vector<double> below(static_cast<size_t>(layer.in_width));
        reverse_affine(layer, gradient, below.data());
        gradient = std::move(below);
    }
    for (size_t i = 0; i < gradient.size(); ++i) input_gradient[i] = gradient[i];
}

}  // namespace mlff
