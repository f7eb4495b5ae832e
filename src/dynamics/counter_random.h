// SPDX-License-Identifier: MIT
// Random numbers that are a function of where they are used, not of what was drawn before (Philox 4x32-10, Salmon et al. 2011): a run that is
// continued draws what the uninterrupted run would have drawn, and atoms can be treated in any order.
#pragma once

#include <array>
#include <cstdint>

namespace mlff {

// 128 random bits for a key and a counter.
std::array<uint32_t, 4> random_bits(uint64_t key, uint64_t counter_high, uint64_t counter_low);

// Three independent numbers of the standard normal distribution, for draw `index` of step `step`.
std::array<double, 3> random_normals(uint64_t seed, uint64_t step, uint64_t index);

// Draws with an index below this one belong to atoms; the others to what acts on all of them.
inline constexpr uint64_t kThermostatDraw = uint64_t{1} << 60, kBarostatDraw = uint64_t{2} << 60;

// The sum of the squares of `degrees` independent standard normal numbers, from draws `index`, `index` + 1, ...
double random_chi_square(uint64_t seed, uint64_t step, uint64_t index, int64_t degrees);

}  // namespace mlff
