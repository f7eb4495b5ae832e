// SPDX-License-Identifier: MIT
// The pairs of elements of the model "zbl".
#pragma once

#include <vector>

#include "core/elements.h"
#include "zbl/functions/repulsion.h"

namespace mlff::zbl {

// [element][element]
inline std::vector<RepulsionPair> pairs_of(const std::vector<int>& elements) {
    std::vector<double> radii;
    for (const int z : elements) radii.push_back(covalent_radius(z));
    return repulsion_pairs(elements, radii);
}

}  // namespace mlff::zbl
