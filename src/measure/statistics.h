// SPDX-License-Identifier: MIT
// Statistics of repeated measurements: independent samples, a few of which were disturbed by other load on the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mlff::bench {

struct Interval {
    double low = 0, high = 0;
};

struct Summary {
    double mean = 0, median = 0;
    double deviation = 0;  // standard deviation, with divisor count - 1; 0 for one sample
    double minimum = 0, maximum = 0;
    double p95 = 0, p99 = 0;
    Interval median_interval;      // 95 % confidence
    std::vector<size_t> outliers;  // indices of samples
};

// All functions throw Error{argument} if there is no sample, or if one is not finite.
void require_samples(std::span<const double> samples);
double average(std::span<const double> samples);
Summary summarize(std::span<const double> samples);

// The value below which `percent` of the samples lie: position (count - 1) percent / 100 of the sorted samples, counted
// from 0, with linear interpolation between neighbours (numpy's default).
double percentile(std::span<const double> samples, double percent);

// The middle 95 % of the medians of `kResamples` sets drawn from the samples with replacement (bootstrap).
// Deterministic. Of more than `kMostResampled` samples, where that takes long, the two whose ranks the number of
// samples below the median determines: it is binomial, and nearly normal.
inline constexpr int kResamples = 1000;
inline constexpr size_t kMostResampled = 5000;
Interval median_interval(std::span<const double> samples);

// The same for median(numerators) / median(denominators). Samples with the same index were taken side by side and are
// drawn together, so that a disturbance of both does not widen the interval. Throws Error{argument} if the counts
// differ or a median of denominators is 0.
Interval median_ratio_interval(std::span<const double> numerators, std::span<const double> denominators);

// Samples more than 3.5 standard deviations from the median. The standard deviation is estimated from the median
// absolute deviation (divided by 0.6745) or, if that is 0, from the mean absolute deviation (times 1.2533). After
// Iglewicz and Hoaglin (1993).
std::vector<size_t> find_outliers(std::span<const double> samples);

}  // namespace mlff::bench
