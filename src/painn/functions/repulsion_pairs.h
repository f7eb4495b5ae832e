// SPDX-License-Identifier: MIT
// The repulsion between all elements of a model.
#pragma once

#include <vector>

#include "painn/weights/weights.h"
#include "zbl/functions/repulsion.h"

namespace mlff::painn {

using zbl::pair_repulsion;
using zbl::RepulsionPair;
using zbl::RepulsionValue;

inline RepulsionPair repulsion_pair(const Weights& weights, int element, int other) {
    if (weights.repulsion_radii.empty()) return {};
    const auto a = static_cast<size_t>(element), b = static_cast<size_t>(other);
    return zbl::repulsion_pair(weights.atomic_numbers[a], weights.atomic_numbers[b],
                               weights.repulsion_radii[a] + weights.repulsion_radii[b]);
}

// All pairs of elements, [element][element].
inline std::vector<RepulsionPair> repulsion_pairs(const Weights& weights) {
    return zbl::repulsion_pairs(weights.atomic_numbers, weights.repulsion_radii);
}

}  // namespace mlff::painn
