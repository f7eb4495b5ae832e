// SPDX-License-Identifier: MIT
// Counter-based random numbers: a function of seed, step and index, without a state. A continued run draws the same
// numbers as an uninterrupted one, and atoms can be processed in any order.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/host_device.h"
#include "core/random_bits.h"

namespace mlff {

// Indices below this belong to atoms; the others to thermostats, barostats and swaps of replicas.
inline constexpr uint64_t kThermostatDraw = uint64_t{1} << 60, kBarostatDraw = uint64_t{2} << 60,
                          kExchangeDraw = uint64_t{3} << 60;

// Three independent standard normal numbers for draw `index` of step `step`, by Box and Muller from uniform numbers in
// (0, 1).
MLFF_HOST_DEVICE inline std::array<double, 3> random_normals(uint64_t seed, uint64_t step, uint64_t index) {
    const std::array<uint32_t, 4> bits = random_bits(seed, step, index);
    const auto uniform = [&](size_t i) { return (bits[i] + 0.5) / 4294967296.0; };
    const double first = std::sqrt(-2 * std::log(uniform(0))), second = std::sqrt(-2 * std::log(uniform(2)));
    const double angle = 2 * std::numbers::pi * uniform(1), other_angle = 2 * std::numbers::pi * uniform(3);
    return {first * std::cos(angle), first * std::sin(angle), second * std::cos(other_angle)};
}

// The sum of squares of `degrees` independent standard normal numbers, from draws `index`, `index` + 1, ... This is
// twice a gamma-distributed number of shape degrees / 2, by Marsaglia and Tsang (2000).
MLFF_HOST_DEVICE inline double random_chi_square(uint64_t seed, uint64_t step, uint64_t index, int64_t degrees) {
    if (degrees <= 0) return 0;
    if (degrees == 1) {
        const double normal = random_normals(seed, step, index)[0];
        return normal * normal;
    }
    const double d = 0.5 * static_cast<double>(degrees) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;; index += 2) {
        const double x = random_normals(seed, step, index)[0], cube_root = 1 + c * x,
                     v = cube_root * cube_root * cube_root;
        const double uniform = (random_bits(seed, step, index + 1)[0] + 0.5) / 4294967296.0;
        if (v > 0 && std::log(uniform) < 0.5 * x * x + d - d * v + d * std::log(v)) return 2 * d * v;
    }
}

}  // namespace mlff
