// SPDX-License-Identifier: MIT
// The statistics of a trajectory, whose samples are correlated in time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace mlff::validate {

// Least squares through values at 0, spacing, 2 spacing, ...
struct LineFit {
    double slope = 0;
    double intercept = 0;
    double slope_error = 0;  // one standard error, from the scatter of the means of 20 blocks about their own line, and
                             // from how that is correlated
    double residual_deviation = 0;  // rms of the values about the line
};
LineFit fit_line(std::span<const double> values, double spacing);  // throws Error{argument} below 20 values

struct CorrelatedMean {
    double mean = 0;
    double error = 0;         // one standard error
    double inefficiency = 1;  // how many samples count as one: 1 + 2 sum of the autocorrelation up to its first zero
};
CorrelatedMean correlated_mean(std::span<const double> values);  // throws Error{argument} below 20 values

// The chance that a sum of squares of `degrees` standard normal numbers is at most `value`.
double chi_square_cdf(double value, double degrees);

// A chi-square test of kinetic energies, in any unit, against the shape of the canonical distribution (chi-square of
// `degrees` degrees of freedom), scaled to their mean. Samples are taken `stride` apart and sorted into up to 10 bins
// of equal probability; at least 5 are expected in each.
struct ShapeTest {
    double p_value = 1;  // the chance of a misfit as large as this one; 1 where there are too few samples for 3 bins
    size_t sample_count = 0;
};
inline constexpr size_t kShapeSamples =
    50;  // fewer make fewer bins than 10, which hardly tell a wrong shape from the right one
ShapeTest canonical_shape_test(std::span<const double> kinetic_energies, double degrees, double stride);

// How far, in angstrom, the mean pair has to move to make one histogram of distances the other: the area between the
// cumulative distributions. NaN where one of them is empty.
double histogram_shift(std::span<const double> first, std::span<const double> second, double bin_width);

}  // namespace mlff::validate
