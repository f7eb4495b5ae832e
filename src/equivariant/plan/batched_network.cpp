// SPDX-License-Identifier: MIT
#include "equivariant/plan/batched_network.h"

#include <algorithm>
#include <cmath>

namespace mlff::equivariant {
namespace {

// out[row] = in[row] weight
void multiply(const KernelTable<double>& kernels, BatchedPass& pass, int row_count, const double* in, int in_width,
              const Buffer<double>& weight, int out_width, Buffer<double>& out) {
    const auto rows = static_cast<size_t>(row_count), in_stride = static_cast<size_t>(padded(in_width)),
               out_stride = static_cast<size_t>(padded(out_width));
    out.resize_discard(rows * out_stride);
    pass.from.resize(rows);
    pass.to.resize(rows);
    for (size_t row = 0; row < rows; ++row) {
        pass.from[row] = in + row * in_stride;
        pass.to[row] = out.data() + row * out_stride;
    }
    kernels.multiply_rows(pass.from.data(), pass.to.data(), row_count, weight.data(), in_width, padded(out_width),
                          false);
}

struct Mean {
    double of_values = 0, of_products = 0;
};
Mean means(const double* values, const double* factors, size_t count) {
    Mean mean;
    for (size_t i = 0; i < count; ++i) {
        mean.of_values += values[i];
        mean.of_products += values[i] * factors[i];
    }
    return {mean.of_values / static_cast<double>(count), mean.of_products / static_cast<double>(count)};
}

// n = (x - mean) / s, s = sqrt(mean of (x - mean)^2 + epsilon); y = n * scale + offset. x becomes y; returns s.
double normalise(const DenseLayer& layer, double* x, double* n) {
    const auto count = layer.norm_scale.size();
    double mean = 0, variance = 0;
    for (size_t i = 0; i < count; ++i) mean += x[i] / static_cast<double>(count);
    for (size_t i = 0; i < count; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(count);
    const double deviation = std::sqrt(variance + layer.norm_epsilon);
    for (size_t i = 0; i < count; ++i) {
        n[i] = (x[i] - mean) / deviation;
        x[i] = n[i] * layer.norm_scale[i] + layer.norm_offset[i];
    }
    return deviation;
}

// dn = (dx - mean(dx) - n mean(n dx)) / s. It serves slopes and, because the matrix is symmetric, gradients too.
void turn_normalised(const double* n, double deviation, size_t count, double* values) {
    const Mean mean = means(values, n, count);
    for (size_t i = 0; i < count; ++i) values[i] = (values[i] - mean.of_values - n[i] * mean.of_products) / deviation;
}

}  // namespace

BatchedNetwork::BatchedNetwork(const DenseNetwork& network, size_t layer_count) : layers_(layer_count) {
    for (size_t k = 0; k < layer_count; ++k) {
        Layer& layer = layers_[k];
        layer.plain = &network.layers[k];
        const auto in = static_cast<size_t>(layer.plain->in_width), out = static_cast<size_t>(layer.plain->out_width);
        const auto in_stride = static_cast<size_t>(padded(layer.plain->in_width)),
                   out_stride = static_cast<size_t>(padded(layer.plain->out_width));
        layer.weight.resize_discard(in * out_stride);
        layer.transposed.resize_discard(out * in_stride);
        std::fill(layer.weight.begin(), layer.weight.end(), 0.0);
        std::fill(layer.transposed.begin(), layer.transposed.end(), 0.0);
        for (size_t u = 0; u < in; ++u)
            for (size_t w = 0; w < out; ++w)
                layer.weight[matrix_index(u, w, in)] = layer.transposed[matrix_index(w, u, out)] =
                    layer.plain->weight[u * out + w];
    }
}

void BatchedNetwork::start(BatchedPass& pass, int row_count) const {
    const size_t size = static_cast<size_t>(row_count) * static_cast<size_t>(in_stride());
    for (Buffer<double>* buffer : {&pass.input, &pass.input_slope}) {
        buffer->resize_discard(size);
        std::fill(buffer->begin(), buffer->end(), 0.0);
    }
}

void BatchedNetwork::compute(const KernelTable<double>& kernels, BatchedPass& pass, int row_count,
                             bool with_slope) const {
    pass.layers.resize(layers_.size());
    const double *in = pass.input.data(), *in_slope = pass.input_slope.data();
    for (size_t k = 0; k < layers_.size(); ++k) {
        const DenseLayer& plain = *layers_[k].plain;
        BatchedPass::Layer& layer = pass.layers[k];
        const auto width = static_cast<size_t>(plain.out_width), stride = static_cast<size_t>(padded(plain.out_width));
        const bool has_norm = !plain.norm_scale.empty();
        multiply(kernels, pass, row_count, in, plain.in_width, layers_[k].weight, plain.out_width, layer.before);
        if (with_slope)
            multiply(kernels, pass, row_count, in_slope, plain.in_width, layers_[k].weight, plain.out_width,
                     layer.output_slope);
        layer.output.resize_discard(layer.before.size());
        layer.deviation.resize(static_cast<size_t>(row_count));
        if (has_norm) layer.normalised.resize_discard(layer.before.size());
        for (size_t row = 0; row < static_cast<size_t>(row_count); ++row) {
            double* before = layer.before.data() + row * stride;
            double* output = layer.output.data() + row * stride;
            double* slope = with_slope ? layer.output_slope.data() + row * stride : nullptr;
            for (size_t i = 0; i < plain.bias.size(); ++i) before[i] += plain.bias[i];
            if (has_norm) {
                double* normalised = layer.normalised.data() + row * stride;
                layer.deviation[row] = normalise(plain, before, normalised);
                if (slope) {
                    turn_normalised(normalised, layer.deviation[row], width, slope);
                    for (size_t i = 0; i < width; ++i) slope[i] *= plain.norm_scale[i];
                }
            }
            for (size_t i = 0; i < width; ++i) output[i] = activate(plain.activation, before[i]);
            std::fill(output + width, output + stride, 0.0);
            if (slope)
                for (size_t i = 0; i < width; ++i) slope[i] *= activation_slope(plain.activation, before[i]);
        }
        in = layer.output.data();
        in_slope = with_slope ? layer.output_slope.data() : nullptr;
    }
}

const double* BatchedNetwork::reverse(const KernelTable<double>& kernels, BatchedPass& pass, int row_count,
                                      const double* output_gradient) const {
    const auto rows = static_cast<size_t>(row_count);
    pass.gradient.resize_discard(rows * static_cast<size_t>(out_stride()));
    std::copy_n(output_gradient, pass.gradient.size(), pass.gradient.data());
    for (size_t k = layers_.size(); k-- > 0;) {
        const DenseLayer& plain = *layers_[k].plain;
        const BatchedPass::Layer& layer = pass.layers[k];
        const auto width = static_cast<size_t>(plain.out_width), stride = static_cast<size_t>(padded(plain.out_width));
        for (size_t row = 0; row < rows; ++row) {
            double* gradient = pass.gradient.data() + row * stride;
            for (size_t i = 0; i < width; ++i)
                gradient[i] *= activation_slope(plain.activation, layer.before[row * stride + i]);
            if (plain.norm_scale.empty()) continue;
            for (size_t i = 0; i < width; ++i) gradient[i] *= plain.norm_scale[i];
            turn_normalised(layer.normalised.data() + row * stride, layer.deviation[row], width, gradient);
        }
        multiply(kernels, pass, row_count, pass.gradient.data(), plain.out_width, layers_[k].transposed, plain.in_width,
                 pass.gradient_below);
        std::swap(pass.gradient, pass.gradient_below);
    }
    return pass.gradient.data();
}

}  // namespace mlff::equivariant
