// SPDX-License-Identifier: MIT
#include "tools/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "dynamics/counter_random.h"

namespace mlff::bench {
namespace {

constexpr uint64_t kBootstrapSeed = 20'240'229;
constexpr double kOutlierDeviations = 3.5;
constexpr double kMedianToStandard = 0.6745, kMeanToStandard = 1.2533;  // for a normal distribution

void need_samples(std::span<const double> samples) {
    if (samples.empty()) fail(Status::argument, "statistics need at least one sample");
    for (double sample : samples)
        if (!std::isfinite(sample)) fail(Status::argument, "statistics need finite samples");
}

double average(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> sorted(std::span<const double> samples) {
    std::vector<double> result(samples.begin(), samples.end());
    std::sort(result.begin(), result.end());
    return result;
}

double percentile_of_sorted(std::span<const double> values, double percent) {
    const double at = static_cast<double>(values.size() - 1) * percent / 100;
    const auto below = static_cast<size_t>(at);
    if (below + 1 >= values.size()) return values.back();
    return values[below] + (at - static_cast<double>(below)) * (values[below + 1] - values[below]);
}

// The middle 95 % of `figure` over `kResamples` sets of `count` indices, drawn with replacement.
template <class Figure>
Interval bootstrap_interval(size_t count, const Figure& figure) {
    std::vector<size_t> drawn(count);
    std::vector<double> figures;
    for (int set = 0; set < kResamples; ++set) {
        for (size_t i = 0; i < count; ++i) {
            const uint32_t bits = random_bits(kBootstrapSeed, static_cast<uint64_t>(set), i)[0];
            drawn[i] = (uint64_t{bits} * count) >> 32;
        }
        figures.push_back(figure(drawn));
    }
    std::sort(figures.begin(), figures.end());
    return {percentile_of_sorted(figures, 2.5), percentile_of_sorted(figures, 97.5)};
}

double median_of_drawn(std::span<const double> samples, const std::vector<size_t>& drawn) {
    std::vector<double> values(drawn.size());
    for (size_t i = 0; i < drawn.size(); ++i) values[i] = samples[drawn[i]];
    std::sort(values.begin(), values.end());
    return percentile_of_sorted(values, 50);
}

}  // namespace

std::vector<double> joined(const SampleBlocks& blocks) {
    std::vector<double> samples;
    for (const auto& block : blocks) samples.insert(samples.end(), block.begin(), block.end());
    return samples;
}

double percentile(std::span<const double> samples, double percent) {
    need_samples(samples);
    if (!(percent >= 0 && percent <= 100)) fail(Status::argument, "percentile ", percent, ": expected 0 to 100");
    return percentile_of_sorted(sorted(samples), percent);
}

Interval median_interval(std::span<const double> samples) {
    need_samples(samples);
    return bootstrap_interval(samples.size(),
                              [&](const std::vector<size_t>& drawn) { return median_of_drawn(samples, drawn); });
}

Interval median_ratio_interval(std::span<const double> numerators, std::span<const double> denominators) {
    need_samples(numerators);
    need_samples(denominators);
    if (numerators.size() != denominators.size())
        fail(Status::argument, "a ratio needs pairs of samples, found ", numerators.size(), " and ",
             denominators.size());
    return bootstrap_interval(numerators.size(), [&](const std::vector<size_t>& drawn) {
        const double denominator = median_of_drawn(denominators, drawn);
        if (!(denominator > 0))
            fail(Status::argument, "a ratio needs denominators with a median above 0, found ", denominator);
        return median_of_drawn(numerators, drawn) / denominator;
    });
}

std::vector<size_t> find_outliers(std::span<const double> samples) {
    const double median = percentile(samples, 50);
    std::vector<double> distances;
    for (double sample : samples) distances.push_back(std::abs(sample - median));
    double deviation = percentile(distances, 50) / kMedianToStandard;
    if (!(deviation > 0)) deviation = average(distances) * kMeanToStandard;
    std::vector<size_t> outliers;
    for (size_t i = 0; i < samples.size(); ++i)
        if (distances[i] > kOutlierDeviations * deviation) outliers.push_back(i);
    return outliers;
}

Summary summarize(std::span<const double> samples) {
    need_samples(samples);
    const std::vector<double> values = sorted(samples);
    Summary summary;
    summary.mean = average(samples);
    double squares = 0;
    for (double sample : samples) squares += (sample - summary.mean) * (sample - summary.mean);
    if (samples.size() > 1) summary.deviation = std::sqrt(squares / static_cast<double>(samples.size() - 1));
    summary.minimum = values.front();
    summary.maximum = values.back();
    summary.median = percentile_of_sorted(values, 50);
    summary.p95 = percentile_of_sorted(values, 95);
    summary.p99 = percentile_of_sorted(values, 99);
    summary.median_interval = median_interval(samples);
    summary.outliers = find_outliers(samples);
    return summary;
}

StraightLine fit_straight_line(std::span<const double> x, std::span<const double> y) {
    need_samples(x);
    need_samples(y);
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
