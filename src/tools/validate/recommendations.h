// SPDX-License-Identifier: MIT
// What to do after a validation, in plain words: rules from the numbers of a report to sentences.
#pragma once

#include <string>
#include <vector>

#include "tools/validate/validation.h"

namespace mlff::validate {

struct Recommendation {
    // "stability", "time step", "precision", "temperature", "structure", "training", "length", "other model", "use"
    std::string about;
    std::string sentence;  // with the numbers that it rests on
};

// Steps per period of the fastest vibration. Its velocities at the ends of steps then lack (2 pi / 10)^2 / 4 = 10 % of
// the kinetic energy. In a box of water that is 2.5 % of all kinetic energy, and 3 % are allowed.
inline constexpr double kStepsPerPeriod = 10;
// A longer step is recommended if it is longer by this factor, and at most by the second, since nothing was run with
// it.
inline constexpr double kWorthwhileStepFactor = 1.4, kMostStepFactor = 2;
// Shorter runs do not know the period well enough for that.
inline constexpr double kLeastFemtosecondsForStep = 1000;
// Forces in the precision of the run are far from their limit if they are this many times below it.
inline constexpr double kPrecisionReserve = 10;

// At least one, and in this order: what must not be run; then settings; then what to look at; then how to go on.
std::vector<Recommendation> recommendations(const Report& report);

}  // namespace mlff::validate
