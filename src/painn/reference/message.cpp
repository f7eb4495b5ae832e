// SPDX-License-Identifier: MIT
#include "painn/reference/message.h"

#include <numeric>

#include "painn/functions/radial.h"

namespace mlff::painn::reference {

void compute_filter(const Weights& weights, const Block& block, double distance, double* filter) {
    const auto count = static_cast<size_t>(weights.radial_count);
    std::vector<double> functions(count + 1);
    radial_functions(weights.radial_count, weights.cutoff, distance, functions.data(), nullptr);
    for (size_t k = 0; k < block.filter.bias.size(); ++k) {
        filter[k] = block.filter.bias[k] * functions[0];
        for (size_t n = 0; n < count; ++n) filter[k] += block.filter.weight[k * count + n] * functions[n + 1];
    }
}

double reverse_filter(const Weights& weights, const Block& block, double distance, const double* filter_gradient) {
    const auto count = static_cast<size_t>(weights.radial_count);
    std::vector<double> functions(count + 1), slopes(count + 1), gradient(count + 1, 0.0);
    radial_functions(weights.radial_count, weights.cutoff, distance, functions.data(), slopes.data());
    for (size_t k = 0; k < block.filter.bias.size(); ++k) {
        gradient[0] += block.filter.bias[k] * filter_gradient[k];
        for (size_t n = 0; n < count; ++n) gradient[n + 1] += block.filter.weight[k * count + n] * filter_gradient[k];
    }
    return std::inner_product(gradient.begin(), gradient.end(), slopes.begin(), 0.0);
}

void add_message(const Message& message, double* scalars, double* vectors) {
    const auto width = static_cast<size_t>(message.hidden);
    for (size_t k = 0; k < width; ++k) {
        const double x_s = message.phi[k] * message.filter[k];
        const double x_v = message.phi[width + k] * message.filter[width + k];
        const double x_u = message.phi[2 * width + k] * message.filter[2 * width + k];
        scalars[k] += x_s;
        for (size_t c = 0; c < 3; ++c)
            vectors[c * width + k] += x_v * message.vectors[c * width + k] + x_u * message.direction[c];
    }
}

void reverse_message(const Message& message, const double* scalars_gradient, const double* vectors_gradient,
                     MessageGradient& gradient) {
    const auto width = static_cast<size_t>(message.hidden);
    gradient.direction = {};
    for (size_t k = 0; k < width; ++k) {
        const double x_v = message.phi[width + k] * message.filter[width + k];
        const double x_u = message.phi[2 * width + k] * message.filter[2 * width + k];
        double by_x[3] = {scalars_gradient[k], 0, 0};  // with respect to x_s, x_v, x_u
        for (size_t c = 0; c < 3; ++c) {
            const double by_vector = vectors_gradient[c * width + k];
            by_x[1] += by_vector * message.vectors[c * width + k];
            by_x[2] += by_vector * message.direction[c];
            gradient.vectors[c * width + k] += x_v * by_vector;
            gradient.direction[c] += x_u * by_vector;
        }
        for (size_t part = 0; part < 3; ++part) {
            gradient.filter[part * width + k] = by_x[part] * message.phi[part * width + k];
            gradient.phi[part * width + k] += by_x[part] * message.filter[part * width + k];
        }
    }
}

}  // namespace mlff::painn::reference
