// SPDX-License-Identifier: MIT
#include "tools/bench/statistics.h"

#include <cmath>

#include "core/error.h"

namespace mlff::bench {

std::vector<double> joined(const SampleBlocks& blocks) {
    std::vector<double> samples;
    for (const auto& block : blocks) samples.insert(samples.end(), block.begin(), block.end());
    return samples;
}

StraightLine fit_straight_line(std::span<const double> x, std::span<const double> y) {
    require_samples(x);
    require_samples(y);
    if (x.size() != y.size())
        fail(Status::argument, "a line needs as many values as positions, found ", y.size(), " and ", x.size());
    const double x_mean = average(x), y_mean = average(y);
    double xx = 0, xy = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        xx += (x[i] - x_mean) * (x[i] - x_mean);
        xy += (x[i] - x_mean) * (y[i] - y_mean);
    }
    if (!(xx > 0)) fail(Status::argument, "a line needs two different positions");
    StraightLine line;
    line.slope = xy / xx;
    line.intercept = y_mean - line.slope * x_mean;
    double squares = 0;
    for (size_t i = 0; i < x.size(); ++i) squares += std::pow(y[i] - line.intercept - line.slope * x[i], 2);
    if (x.size() > 2) line.slope_error = std::sqrt(squares / static_cast<double>(x.size() - 2) / xx);
    return line;
}

}  // namespace mlff::bench
