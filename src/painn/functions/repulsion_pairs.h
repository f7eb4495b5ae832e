// SPDX-License-Identifier: MIT
// The repulsion between all elements of a model.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "painn/functions/repulsion.h"
#include "painn/weights/weights.h"

namespace mlff::painn {

inline RepulsionPair repulsion_pair(const Weights& weights, int element, int other) {
    constexpr double kCoulomb = 14.3996454784255, kBohr = 0.529177210903;  // eV angstrom, angstrom
    if (weights.repulsion_radii.empty()) return {};
    const auto a = static_cast<size_t>(element), b = static_cast<size_t>(other);
    const double first = weights.atomic_numbers[a], second = weights.atomic_numbers[b];
    return {kCoulomb * first * second, 0.8854 * kBohr / (std::pow(first, 0.23) + std::pow(second, 0.23)),
            weights.repulsion_radii[a] + weights.repulsion_radii[b]};
}

// All pairs of elements, [element][element].
inline std::vector<RepulsionPair> repulsion_pairs(const Weights& weights) {
    std::vector<RepulsionPair> pairs;
    const auto count = static_cast<int>(weights.atomic_numbers.size());
    for (int i = 0; i < count; ++i)
        for (int j = 0; j < count; ++j) pairs.push_back(repulsion_pair(weights, i, j));
    return pairs;
}

}  // namespace mlff::painn
