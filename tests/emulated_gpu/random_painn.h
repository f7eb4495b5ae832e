// SPDX-License-Identifier: MIT
// PaiNN with random weights, and random atoms for it.
#pragma once

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "core/system_view.h"
#include "painn/weights/weights.h"

namespace mlff::test {

using painn::Linear;
using painn::Weights;
using Numbers = std::vector<double>;

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    double operator()(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
    int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(engine_); }

private:
    std::mt19937 engine_;
};

inline Linear random_linear(Random& random, int in, int out, bool has_bias) {
    Linear linear = {in, out, Numbers(static_cast<size_t>(in) * static_cast<size_t>(out)),
                     Numbers(has_bias ? static_cast<size_t>(out) : 0)};
    for (double& w : linear.weight) w = random(-1, 1) * std::sqrt(3.0 / in);
    for (double& b : linear.bias) b = random(-0.3, 0.3);
    return linear;
}

inline std::shared_ptr<const Weights> random_weights(unsigned seed, int width, int block_count, int radial_count,
                                                     bool has_repulsion) {
    Random random(seed);
    auto weights = std::make_shared<Weights>();
    weights->hidden = width;
    weights->radial_count = radial_count;
    weights->cutoff = 4.0;
    weights->atomic_numbers = {1, 6, 8};
    weights->atomic_energies = {-13.5, -1029.25, -2042.0};
    weights->scales = {0.5, 1.25, 0.75};
    if (has_repulsion) {
        weights->repulsion_radii = {0.6, 1.1, 1.2};
        weights->closest = {0.9, 1.2, 1.1, 1.2, 1.4, 1.3, 1.1, 1.3, 1.5};
    }
    for (int i = 0; i < 3 * width; ++i) weights->embedding.push_back(random(-1, 1));
    for (int b = 0; b < block_count; ++b) {
        painn::Block block;
        block.filter = random_linear(random, radial_count, 3 * width, true);
        for (double& w : block.filter.weight) w *= 0.3;
        block.message_hidden = random_linear(random, width, width, true);
        block.message_output = random_linear(random, width, 3 * width, true);
        block.mix = random_linear(random, width, 2 * width, false);
        block.update_hidden = random_linear(random, 2 * width, width, true);
        block.update_output = random_linear(random, width, 3 * width, true);
        weights->blocks.push_back(block);
    }
    weights->readout_hidden = random_linear(random, width, width / 2, true);
    weights->readout_output = random_linear(random, width / 2, 1, true);
    return weights;
}

struct System {
    std::vector<int32_t> numbers;
    Numbers positions;
    Mat3 cell{};
    bool is_periodic = false;

    SystemView view() const {
        SystemView view;
        view.atom_count = static_cast<int64_t>(numbers.size());
        view.atomic_numbers = numbers.data();
        view.positions = positions.data();
        view.cell = cell;
        view.periodic = {is_periodic, is_periodic, is_periodic};
        return view;
    }
};
inline System random_system(unsigned seed, int atom_count, double box, bool is_periodic) {
    Random random(seed);
    System system;
    const int kNumbers[] = {1, 6, 8};
    while (static_cast<int>(system.numbers.size()) < atom_count) {
        const double at[3] = {random(0, box), random(0, box), random(0, box)};
        bool is_free = true;
        for (size_t i = 0; i < system.numbers.size(); ++i) {
            double square = 0;
            for (size_t k = 0; k < 3; ++k) square += std::pow(system.positions[3 * i + k] - at[k], 2);
            is_free &= square > 0.8 * 0.8;
        }
        if (!is_free) continue;
        system.numbers.push_back(kNumbers[random.below(3)]);
        system.positions.insert(system.positions.end(), at, at + 3);
    }
    if (is_periodic) {
        system.is_periodic = true;
        system.cell = {{{box, 0, 0}, {0.4, box, 0}, {0.1, -0.3, box}}};
    }
    return system;
}

}  // namespace mlff::test
