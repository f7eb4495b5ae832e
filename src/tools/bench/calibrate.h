// SPDX-License-Identifier: MIT
// Measures the cost model of a model on this machine: a handful of sizes in two densities.
#pragma once

#include "tools/bench/suites.h"

namespace mlff::bench {

// Samples and fits; the caller fills in what it is a calibration of. Throws Error{unsupported} for models whose
// neighbours and memory are not ours to see.
plan::Calibration calibrate(Bench& bench);

// The systems and what came out, for people.
std::string calibration_table(const plan::Calibration& calibration);

}  // namespace mlff::bench
