// SPDX-License-Identifier: MIT
// Statistics of trajectories, whose samples are correlated in time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace mlff::validate {

// A least-squares line through values at 0, spacing, 2 spacing, ...
struct LineFit {
    double slope = 0;
    double intercept = 0;
    double slope_error = 0;         // one standard error, from the scatter of the means of 20 blocks about their own
                                    // line, corrected for correlation
    double residual_deviation = 0;  // rms of the values about the line
};
LineFit fit_line(std::span<const double> values, double spacing);  // throws Error{argument} below 20 values

struct CorrelatedMean {
    double mean = 0;
    double error = 0;         // one standard error
    double inefficiency = 1;  // samples per independent sample: 1 + 2 sum of the autocorrelation up to its first zero
};
CorrelatedMean correlated_mean(std::span<const double> values);  // throws Error{argument} below 20 values

// The probability that the sum of squares of `degrees` standard normal numbers is at most `value`.
double chi_square_cdf(double value, double degrees);

// A chi-square test of kinetic energies (in any unit) against the canonical distribution (chi-square with `degrees`
// degrees of freedom), scaled to their mean. Takes every `stride`-th sample and sorts them into up to 10 bins of equal
// probability; each has at least 5 expected samples.
struct ShapeTest {
    double p_value = 1;  // the probability of a misfit at least this large; 1 if there are too few samples for 3 bins
    size_t sample_count = 0;
};
inline constexpr size_t kShapeSamples = 50;  // fewer samples give fewer than 10 bins, which hardly detect a wrong shape
ShapeTest canonical_shape_test(std::span<const double> kinetic_energies, double degrees, double stride);

// The mean distance, in angstrom, by which pairs must move to turn one histogram of distances into the other: the area
// between the cumulative distributions. NaN if one of them is empty.
double histogram_shift(std::span<const double> first, std::span<const double> second, double bin_width);

}  // namespace mlff::validate
