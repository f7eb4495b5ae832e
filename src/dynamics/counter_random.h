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

}  // namespace mlff
