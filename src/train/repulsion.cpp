// SPDX-License-Identifier: MIT
#include "train/repulsion.h"

#include <array>
#include <cmath>

namespace mlff::train {

PairTerm repulsion(int atomic_number_a, int atomic_number_b, double radius_sum, double distance) {
    const double t = distance / radius_sum;
    if (!(t < 1)) return {};
    constexpr double kCoulomb = 14.3996454784255;  // eV angstrom
    constexpr std::array<double, 4> kWeight = {0.18175, 0.50986, 0.28022, 0.02817},
                                    kRate = {3.19980, 0.94229, 0.40290, 0.20162};
    const double length = 0.8854 * 0.529177210903 / (std::pow(atomic_number_a, 0.23) + std::pow(atomic_number_b, 0.23));
    const double charge = kCoulomb * atomic_number_a * atomic_number_b;
    double screening = 0, screening_slope = 0;
    for (size_t m = 0; m < kWeight.size(); ++m) {
        const double term = kWeight[m] * std::exp(-kRate[m] * distance / length);
        screening += term;
        screening_slope -= term * kRate[m] / length;
    }
    const double bare = charge * screening / distance;
    const double bare_slope = charge * (screening_slope - screening / distance) / distance;
    const double fade = 1 - t * t * t * (10 - t * (15 - 6 * t));
    const double fade_slope = -30 * t * t * (1 - t) * (1 - t) / radius_sum;
    return {bare * fade, bare_slope * fade + bare * fade_slope};
}

}  // namespace mlff::train
