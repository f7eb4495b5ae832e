// SPDX-License-Identifier: MIT
// The radial basis of the filters, and its slopes:
//   basis_n(d) = fade(d) sin(n pi d / c) / d,  n = 1..R;  basis_0(d) = fade(d), for the bias
//   fade(d) = (1 + cos(pi d / c)) / 2
// Edges are shorter than the cutoff c. Beyond it and below 0, the formulas continue smoothly, which suits tables.
#pragma once

#include <cmath>
#include <numbers>

#include "core/host_device.h"

namespace mlff::painn {

// values, slopes: [R + 1], beginning with that of the bias. `slopes` may be nullptr.
MLFF_HOST_DEVICE inline void radial_functions(int radial_count, double cutoff, double distance, double* values,
                                              double* slopes) {
    const double wave = std::numbers::pi / cutoff, x = wave * distance;
    const double fade = 0.5 * (1 + std::cos(x)), fade_slope = -0.5 * wave * std::sin(x);
    values[0] = fade;
    if (slopes) slopes[0] = fade_slope;
    for (int n = 1; n <= radial_count; ++n) {
        const double basis = distance == 0 ? n * wave : std::sin(n * x) / distance;
        values[n] = basis * fade;
        if (slopes)
            slopes[n] =
                (distance == 0 ? 0 : (n * wave * std::cos(n * x) - basis) / distance) * fade + basis * fade_slope;
    }
}

}  // namespace mlff::painn
