// SPDX-License-Identifier: MIT
// Whether dynamics in a bath samples the canonical distribution of velocities.
#pragma once

#include <vector>

#include "tools/validate/check.h"
#include "tools/validate/thresholds.h"
#include "tools/validate/trajectory.h"

namespace mlff::validate {

// The first part of a run in a bath, which is not counted: the structure comes to the bath's temperature.
inline constexpr double kEquilibrationPart = 0.2;

// As many steps in the bath for each step without.
inline constexpr double kBathPart = 0.5;

// Mean temperature, the shape of its distribution, and the temperature of each element on its own, of all 3 N degrees
// of freedom: the bath moves the centre of mass as well. The uncertainty is that of canonical samples as many as are
// independent: one per 1 / friction at most, however smooth a short run looks.
std::vector<Check> check_temperature(const Run& run, double bath_temperature, const Thresholds& thresholds);

}  // namespace mlff::validate
