// SPDX-License-Identifier: MIT
// The screened repulsion of two nuclei (Ziegler, Biersack, Littmark), faded to zero at the sum of their radii:
//   V(d) = k Z_i Z_j / d * sum over m of a_m exp(-b_m d / l),  l = 0.8854 * bohr / (Z_i^0.23 + Z_j^0.23)
//   times 1 - 10 t^3 + 15 t^4 - 6 t^5,  t = d / (radius_i + radius_j);  0 from t = 1 on
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "core/host_device.h"

namespace mlff::zbl {

struct RepulsionPair {
    double strength = 0;  // k Z_i Z_j, eV angstrom
    double length = 1;    // l, angstrom
    double reach = 0;     // radius_i + radius_j, angstrom; 0: no repulsion
};
struct RepulsionValue {
    double energy = 0;  // of the pair, eV
    double slope = 0;   // derivative with respect to the distance
};

MLFF_HOST_DEVICE inline RepulsionValue pair_repulsion(const RepulsionPair& pair, double distance) {
    constexpr double kShare[4] = {0.18175, 0.50986, 0.28022, 0.02817}, kDecay[4] = {3.19980, 0.94229, 0.40290, 0.20162};
    if (!(distance < pair.reach)) return {};
    double screening = 0, screening_slope = 0;
    for (int m = 0; m < 4; ++m) {
        const double term = kShare[m] * std::exp(-kDecay[m] * distance / pair.length);
        screening += term;
        screening_slope -= kDecay[m] / pair.length * term;
    }
    const double t = distance / pair.reach;
    const double fade = 1 + t * t * t * (-10 + t * (15 - 6 * t)),
                 fade_slope = -30 * t * t * (1 - t) * (1 - t) / pair.reach;
    const double coulomb = pair.strength / distance;
    return {coulomb * screening * fade,
            coulomb * ((screening_slope - screening / distance) * fade + screening * fade_slope)};
}

inline RepulsionPair repulsion_pair(int atomic_number, int other, double reach) {
    constexpr double kCoulomb = 14.3996454784255, kBohr = 0.529177210903;  // eV angstrom, angstrom
    const double first = atomic_number, second = other;
    return {kCoulomb * first * second, 0.8854 * kBohr / (std::pow(first, 0.23) + std::pow(second, 0.23)), reach};
}

// All pairs of elements, [element][element]. `radii`: [element], angstrom; if it is empty, there is no repulsion.
inline std::vector<RepulsionPair> repulsion_pairs(std::span<const int> atomic_numbers, std::span<const double> radii) {
    std::vector<RepulsionPair> pairs;
    for (size_t i = 0; i < atomic_numbers.size(); ++i)
        for (size_t j = 0; j < atomic_numbers.size(); ++j)
            pairs.push_back(radii.empty() ? RepulsionPair{}
                                          : repulsion_pair(atomic_numbers[i], atomic_numbers[j], radii[i] + radii[j]));
    return pairs;
}

}  // namespace mlff::zbl
