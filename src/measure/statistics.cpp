// SPDX-License-Identifier: MIT
#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/random_bits.h"

namespace mlff::bench {
namespace {

constexpr uint64_t kBootstrapSeed = 20'240'229;
constexpr double kOutlierDeviations = 3.5;
constexpr double kMedianToStandard = 0.6745, kMeanToStandard = 1.2533;  // for a normal distribution

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

// The samples 1.96 standard deviations of a binomial distribution below and above the middle one.
Interval interval_by_rank(std::span<const double> values) {
    constexpr double kNormalDeviations = 1.959964;
    const double percent = 50 * kNormalDeviations / std::sqrt(static_cast<double>(values.size()));
    return {percentile_of_sorted(values, 50 - percent), percentile_of_sorted(values, 50 + percent)};
}

double median_of_drawn(std::span<const double> samples, const std::vector<size_t>& drawn) {
    std::vector<double> values(drawn.size());
    for (size_t i = 0; i < drawn.size(); ++i) values[i] = samples[drawn[i]];
    std::sort(values.begin(), values.end());
    return percentile_of_sorted(values, 50);
}

}  // namespace

void require_samples(std::span<const double> samples) {
    if (samples.empty()) fail(Status::argument, "statistics need at least one sample");
    for (double sample : samples)
        if (!std::isfinite(sample)) fail(Status::argument, "statistics need finite samples");
}

double average(std::span<const double> samples) {
    require_samples(samples);
    return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double percentile(std::span<const double> samples, double percent) {
    require_samples(samples);
    if (!(percent >= 0 && percent <= 100)) fail(Status::argument, "percentile ", percent, ": expected 0 to 100");
    return percentile_of_sorted(sorted(samples), percent);
}

Interval median_interval(std::span<const double> samples) {
    require_samples(samples);
    if (samples.size() > kMostResampled) return interval_by_rank(sorted(samples));
    return bootstrap_interval(samples.size(),
                              [&](const std::vector<size_t>& drawn) { return median_of_drawn(samples, drawn); });
}

Interval median_ratio_interval(std::span<const double> numerators, std::span<const double> denominators) {
    require_samples(numerators);
    require_samples(denominators);
    if (numerators.size() != denominators.size())
        fail(Status::argument, "a ratio needs pairs of samples, found ", numerators.size(), " and ",
             denominators.size());
    // Of very many pairs, only every n-th is drawn from: the time is bounded, and the interval is a little wider.
    const size_t stride = (numerators.size() + kMostResampled - 1) / kMostResampled;
    return bootstrap_interval((numerators.size() + stride - 1) / stride, [&](std::vector<size_t> drawn) {
        for (size_t& i : drawn) i *= stride;
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
    require_samples(samples);
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

}  // namespace mlff::bench
