// SPDX-License-Identifier: MIT
// The statistics of repeated measurements: independent samples, a few of which were disturbed by something else on the
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mlff::bench {

struct Interval {
    double low = 0, high = 0;
};

// [block][sample]: the samples of a block were taken one after the other, and between blocks something else was done.
using SampleBlocks = std::vector<std::vector<double>>;
std::vector<double> joined(const SampleBlocks& blocks);

struct Summary {
    double mean = 0, median = 0;
    double deviation = 0;  // standard deviation of the sample, divided by count - 1; 0 for one sample
    double minimum = 0, maximum = 0;
    double p95 = 0, p99 = 0;
    Interval median_interval;      // 95 % confidence
    std::vector<size_t> outliers;  // indices of samples
};

// All functions throw Error{argument} if there is no sample or one is not finite.
Summary summarize(std::span<const double> samples);

// The value below which `percent` of the samples are: of the sorted samples number (count - 1) percent / 100, counted
// from 0, by linear interpolation between the two neighbours (numpy's default).
double percentile(std::span<const double> samples, double percent);

// The middle 95 % of the medians of `kResamples` sets drawn from the samples with replacement (bootstrap). The same for
// the same samples.
inline constexpr int kResamples = 1000;
Interval median_interval(std::span<const double> samples);

// Of median(numerators) / median(denominators), the same way. Samples of the same index were taken side by side and are
// drawn together, so that what slowed both of a pair does not widen the interval. Throws Error{argument} if the counts
// differ or a median of denominators is 0.
Interval median_ratio_interval(std::span<const double> numerators, std::span<const double> denominators);

// Samples farther from the median than 3.5 standard deviations as the median absolute deviation estimates them (divided
// by 0.6745); where that is 0, as the mean absolute deviation does (times 1.2533). After Iglewicz and Hoaglin (1993).
std::vector<size_t> find_outliers(std::span<const double> samples);

// Least squares through (x, y); throws Error{argument} below two different x.
struct StraightLine {
    double intercept = 0, slope = 0;
    double slope_error = 0;  // one standard error; 0 for two points
};
StraightLine fit_straight_line(std::span<const double> x, std::span<const double> y);

}  // namespace mlff::bench
