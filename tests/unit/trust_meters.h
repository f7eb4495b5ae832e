// SPDX-License-Identifier: MIT
// Trust meters with random numbers.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "trust/meter.h"

namespace mlff::test {

// For descriptors of about `size`. `elements` are ascending.
inline TrustMeter random_trust_meter(unsigned seed, int descriptor_count, int component_count,
                                     std::vector<int> elements, double radius, double size = 1) {
    std::mt19937 engine(seed);
    const auto random = [&](double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(engine);
    };
    const auto fill = [&](auto& numbers, size_t count, double low, double high) {
        numbers.resize(count);
        for (auto& number : numbers) number = static_cast<std::decay_t<decltype(number)>>(random(low, high));
    };
    TrustMeter meter;
    meter.descriptor_count = descriptor_count;
    meter.component_count = component_count;
    meter.radius = radius;
    meter.elements = std::move(elements);
    const size_t count = meter.elements.size(), width = static_cast<size_t>(descriptor_count),
                 components = static_cast<size_t>(component_count);
    const double scale = 2 / (size * std::sqrt(static_cast<double>(descriptor_count)));
    fill(meter.centers, count * width, -0.3 * size, 0.3 * size);
    fill(meter.directions, width * components, -scale, scale);
    fill(meter.variances, components, 0.1 * size * size, size * size);
    fill(meter.limits, count, 0.9 * descriptor_count, 1.1 * descriptor_count);
    fill(meter.offsets, count, -3, -2);
    fill(meter.linear, components, -0.2, 0.2);
    fill(meter.quadratic, components * (components + 1) / 2, -0.05, 0.05);
    fill(meter.final_offsets, count, -0.1, 0.1);
    meter.rest_variance = 0.3 * size * size;
    meter.rest_weight = 0.1;
    meter.lowest_score = -6;
    meter.highest_score = 0.5;
    meter.own_weight = 0.6;
    meter.neighbor_weight = 0.3;
    meter.count_weight = -0.02;
    meter.outside_error = 0.2;
    meter.alarm_error = 0.1;
    return meter;
}

}  // namespace mlff::test
