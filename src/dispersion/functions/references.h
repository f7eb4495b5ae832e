// SPDX-License-Identifier: MIT
// How much each reference system of an element counts for an atom with coordination number n:
//   w_p = exp(-4 (n - n_p)^2) / sum over q of exp(-4 (n - n_q)^2)
// Exponents are taken relative to the largest, so that no number of neighbours leads to 0 / 0.
#pragma once

#include <cmath>

#include "core/host_device.h"

namespace mlff::dispersion {

inline constexpr int kMaxReferences = 7;

// `references`: n_p [count]. Writes weights and slopes dw/dn, [count] each.
template <class Real>
MLFF_HOST_DEVICE inline void weigh_references(const Real* references, int count, Real n, Real* weights, Real* slopes) {
    constexpr Real kSharpness = 4;
    Real nearest = (n - references[0]) * (n - references[0]);
    for (int p = 1; p < count; ++p) {
        const Real square = (n - references[p]) * (n - references[p]);
        if (square < nearest) nearest = square;
    }
    Real sum = 0, slope_sum = 0;
    for (int p = 0; p < count; ++p) {
        const Real away = n - references[p];
        weights[p] = std::exp(-kSharpness * (away * away - nearest));
        slopes[p] = -2 * kSharpness * away;
        sum += weights[p];
        slope_sum += weights[p] * slopes[p];
    }
    const Real mean_slope = slope_sum / sum;
    for (int p = 0; p < count; ++p) {
        weights[p] /= sum;
        slopes[p] = weights[p] * (slopes[p] - mean_slope);
    }
}

}  // namespace mlff::dispersion
