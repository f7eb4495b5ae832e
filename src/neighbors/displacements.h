// SPDX-License-Identifier: MIT
// How far atoms have moved since the last search, and whether its candidates may be reused.
#pragma once

#include <cmath>
#include <limits>

#include "core/host_device.h"

namespace mlff {

// The two largest displacements, squared. Independent of the order in which they are added. A NaN counts as infinite.
struct LargestDisplacements {
    double largest = 0;
    double second = 0;

    MLFF_HOST_DEVICE void add(double squared) {
        if (!(squared <= largest)) {
            second = largest;
            largest = squared > largest ? squared : std::numeric_limits<double>::infinity();
        } else if (squared > second) {
            second = squared;
        }
    }
    MLFF_HOST_DEVICE void merge(const LargestDisplacements& other) {
        add(other.largest);
        add(other.second);
    }

    // True if no pair that was beyond cutoff + skin at the search can be within the cutoff now.
    MLFF_HOST_DEVICE bool allow_reuse(double skin) const {
        return largest <= skin * skin && std::sqrt(largest) + std::sqrt(second) <= skin;
    }
};

}  // namespace mlff
