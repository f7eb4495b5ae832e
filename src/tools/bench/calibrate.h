// SPDX-License-Identifier: MIT
// Measures the cost model of a model on this machine, with a few sizes at two densities.
#pragma once

#include "tools/bench/suites.h"

namespace mlff::bench {

// Samples and fits; the caller fills in the key. Throws Error{unsupported} for models whose neighbour lists and memory
// mlff cannot see (Python models).
plan::Calibration calibrate(Bench& bench);

// The systems and the fitted costs, as a table for the terminal.
std::string calibration_table(const plan::Calibration& calibration);

}  // namespace mlff::bench
