// SPDX-License-Identifier: MIT
// Checks that dynamics in a bath samples the canonical distribution of velocities.
#pragma once

#include <vector>

#include "tools/validate/check.h"
#include "tools/validate/thresholds.h"
#include "tools/validate/trajectory.h"

namespace mlff::validate {

// The fraction of a run in a bath that is discarded while the structure reaches the bath's temperature.
inline constexpr double kEquilibrationPart = 0.2;

// Steps in the bath per step without it.
inline constexpr double kBathPart = 0.5;

// Checks the mean temperature, the shape of its distribution, and the temperature of each element, from all 3 N degrees
// of freedom (the bath also moves the centre of mass). The uncertainty is that of independent canonical samples: at
// most one per 1 / friction, however smooth a short run looks.
std::vector<Check> check_temperature(const Run& run, double bath_temperature, const Thresholds& thresholds);

}  // namespace mlff::validate
