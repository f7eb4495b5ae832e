// SPDX-License-Identifier: MIT
// Statistics of what the suites measure, beyond those of one list of samples.
#pragma once

#include <span>
#include <vector>

#include "measure/statistics.h"

namespace mlff::bench {

// [block][sample]: samples of a block were taken one after the other; between blocks something else ran.
using SampleBlocks = std::vector<std::vector<double>>;
std::vector<double> joined(const SampleBlocks& blocks);

// Least-squares line through (x, y). Throws Error{argument} with fewer than two different x.
struct StraightLine {
    double intercept = 0, slope = 0;
    double slope_error = 0;  // one standard error; 0 for two points
};
StraightLine fit_straight_line(std::span<const double> x, std::span<const double> y);

}  // namespace mlff::bench
