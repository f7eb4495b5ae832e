// SPDX-License-Identifier: MIT
// The functions of the distance that filters are made of, faded to zero at the cutoff, with their slopes:
//   basis_n(d) = fade(d) sin(n pi d / c) / d,  n = 1..R;  basis_0(d) = fade(d), for the bias;  fade(d) = (1 + cos(pi d / c)) / 2
#pragma once

#include <cmath>
#include <numbers>

#include "core/host_device.h"

namespace mlff::painn {

// values, slopes: [R + 1], the bias's first. `slopes` may be nullptr. Zero from the cutoff on.
MLFF_HOST_DEVICE inline void radial_functions(int radial_count, double cutoff, double distance, double* values, double* slopes) {
    const double wave = std::numbers::pi / cutoff, x = wave * distance;
    const bool is_inside = distance < cutoff;
    const double fade = is_inside ? 0.5 * (1 + std::cos(x)) : 0, fade_slope = is_inside ? -0.5 * wave * std::sin(x) : 0;
    values[0] = fade;
    if (slopes) slopes[0] = fade_slope;
    for (int n = 1; n <= radial_count; ++n) {
        const double sine = std::sin(n * x), basis = sine / distance;
        values[n] = basis * fade;
        if (slopes) slopes[n] = (n * wave * std::cos(n * x) - basis) / distance * fade + basis * fade_slope;
    }
}

}  // namespace mlff::painn
