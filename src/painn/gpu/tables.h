// SPDX-License-Identifier: MIT
// Tables of a model for the GPU, computed on the host: weights in the GPU's layout, and what depends on the element
// alone. Does not depend on CUDA.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "painn/weights/weights.h"

namespace mlff::painn::gpu {

// [function][s, v, u][F] for the functions of EdgeFunctions; the bias is the weight of the fade. `function_count`
// includes padding.
inline std::vector<double> filter_table(const Linear& filter, int function_count) {
    const auto columns = static_cast<size_t>(filter.out_width), radial = static_cast<size_t>(filter.in_width);
    std::vector<double> table(static_cast<size_t>(function_count) * columns, 0.0);
    for (size_t c = 0; c < columns; ++c) {
        for (size_t n = 0; n < radial; ++n) table[n * columns + c] = filter.weight[c * radial + n];
        table[radial * columns + c] = filter.bias.empty() ? 0 : filter.bias[c];
    }
    return table;
}

// The power of two that brings the largest number to between 8 and 16; 1 if all are zero.
inline float scale_for_halves(const std::vector<double>& numbers) {
    double largest = 0;
    for (const double x : numbers) largest = std::max(largest, std::abs(x));
    return largest > 0 ? static_cast<float>(std::exp2(3 - std::floor(std::log2(largest)))) : 1;
}

inline std::vector<double> apply_linear(const Linear& linear, const std::vector<double>& in) {
    std::vector<double> out(static_cast<size_t>(linear.out_width));
    for (size_t o = 0; o < out.size(); ++o) {
        out[o] = linear.bias.empty() ? 0 : linear.bias[o];
        for (size_t i = 0; i < in.size(); ++i) out[o] += linear.weight[o * in.size() + i] * in[i];
    }
    return out;
}

// What atoms send in the first block, [element][phi_s, phi_u][F]. Vectors are zero there, so phi_v is not needed.
inline std::vector<double> first_sent(const Weights& weights) {
    const auto width = static_cast<size_t>(weights.hidden);
    std::vector<double> sent;
    for (size_t element = 0; element < weights.atomic_numbers.size(); ++element) {
        const auto row = weights.embedding.begin() + static_cast<std::ptrdiff_t>(element * width);
        std::vector<double> hidden =
            apply_linear(weights.blocks.front().message_hidden, {row, row + static_cast<std::ptrdiff_t>(width)});
        for (double& x : hidden) x /= 1 + std::exp(-x);
        const std::vector<double> phi = apply_linear(weights.blocks.front().message_output, hidden);
        for (const size_t part : {size_t{0}, size_t{2}})
            for (size_t c = 0; c < width; ++c) sent.push_back(phi[part * width + c]);
    }
    return sent;
}

// What atoms send in the first block times the weights of the filter, [element][s, u][function][F]. For
// `function_count` see filter_table().
inline std::vector<double> first_products(const Weights& weights, int function_count) {
    const auto width = static_cast<size_t>(weights.hidden), functions = static_cast<size_t>(function_count);
    const std::vector<double> sent = first_sent(weights),
                              filter = filter_table(weights.blocks[0].filter, function_count);
    std::vector<double> products;
    for (size_t row = 0; row < sent.size() / width; ++row)
        for (size_t n = 0; n < functions; ++n)
            for (size_t c = 0; c < width; ++c)
                products.push_back(sent[row * width + c] * filter[(3 * n + (row % 2 == 0 ? 0 : 2)) * width + c]);
    return products;
}

}  // namespace mlff::painn::gpu
