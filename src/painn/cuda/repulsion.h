// SPDX-License-Identifier: MIT
// The screened nuclear repulsion of docs/painn.md, for host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"

namespace mlff::painn::cuda {

struct ValueAndSlope {
    double value = 0, slope = 0;
};

// Of a pair of elements.
struct PairRepulsion {
    double strength = 0;        // k Z_i Z_j, eV angstrom
    double inverse_length = 0;  // 1 / l
    double reach = 0;           // radius_i + radius_j; nothing from here on
};
inline PairRepulsion pair_repulsion(int number, int other_number, double radius, double other_radius) {
    const double length = 0.8854 * 0.529177210903 / (std::pow(number, 0.23) + std::pow(other_number, 0.23));
    return {14.3996454784255 * number * other_number, 1 / length, radius + other_radius};
}

// Half of the energy of the pair: what one edge has.
MLFF_HOST_DEVICE inline ValueAndSlope half_repulsion(const PairRepulsion& pair, double d) {
    if (!(d < pair.reach)) return {};
    const double kShare[4] = {0.18175, 0.50986, 0.28022, 0.02817}, kDecay[4] = {3.19980, 0.94229, 0.40290, 0.20162};
    double screening = 0, screening_slope = 0;
    for (int m = 0; m < 4; ++m) {
        const double term = kShare[m] * exp(-kDecay[m] * pair.inverse_length * d);
        screening += term;
        screening_slope -= kDecay[m] * pair.inverse_length * term;
    }
    const double t = d / pair.reach;
    const double fade = 1 - t * t * t * (10 - 15 * t + 6 * t * t), fade_slope = -30 * t * t * (1 - t) * (1 - t) / pair.reach;
    const double coulomb = 0.5 * pair.strength / d;
    return {coulomb * screening * fade, coulomb * (screening_slope * fade + screening * fade_slope - screening * fade / d)};
}

}  // namespace mlff::painn::cuda
