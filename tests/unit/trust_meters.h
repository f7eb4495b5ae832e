// SPDX-License-Identifier: MIT
// Trust meters for tests: random numbers of the size that fitted ones have, and files beside models.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/mapped_file.h"
#include "engine/trust_files.h"
#include "trust/meter.h"

namespace mlff::test {

// `scale`: how large the descriptors of the model are.
inline TrustMeter random_trust_meter(int descriptor_count, const std::vector<int>& elements, double scale = 1,
                                     unsigned seed = 1, int component_count = 5) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const auto fill = [&](auto& values, size_t count, double size, double mean = 0) {
        for (size_t i = 0; i < count; ++i)
            values.push_back(
                static_cast<typename std::decay_t<decltype(values)>::value_type>(mean + size * normal(random)));
    };
    const auto width = static_cast<size_t>(descriptor_count), components = static_cast<size_t>(component_count);
    TrustMeter meter;
    meter.descriptor_count = descriptor_count;
    meter.component_count = component_count;
    meter.radius = 4;
    meter.elements = elements;
    fill(meter.centers, elements.size() * width, 0.5 * scale);
    fill(meter.directions, width * components, 1 / (scale * std::sqrt(descriptor_count)));
    for (size_t i = 0; i < components; ++i) meter.variances.push_back(scale * scale / static_cast<double>(i + 1));
    meter.rest_variance = scale * scale;
    for (size_t i = 0; i < elements.size(); ++i)
        meter.limits.push_back((descriptor_count + component_count) * (0.5 + 2 * static_cast<double>(i)));
    fill(meter.offsets, elements.size(), 0.2, -4);
    fill(meter.linear, components, 0.2);
    fill(meter.quadratic, components * (components + 1) / 2, 0.05);
    meter.rest_weight = 0.3;
    meter.lowest_score = -6;
    meter.highest_score = 1;
    meter.own_weight = 0.7;
    meter.neighbor_weight = 0.4;
    meter.count_weight = -0.02;
    fill(meter.final_offsets, elements.size(), 0.1);
    meter.outside_error = 0.15;
    meter.alarm_error = 0.3;
    meter.card = JsonValue::Object{{"frames", 3}, {"spearman", 0.1}};
    return meter;
}

// Writes the meter beside a model file, as one that was fitted to it.
inline TrustMeter add_trust_file(const std::string& model_path, TrustMeter meter) {
    meter.model_fingerprint = fingerprint_of_model(MappedFile::open(model_path)->bytes());
    write_trust_meter(trust_file_of(model_path), meter);
    return meter;
}

}  // namespace mlff::test
