// SPDX-License-Identifier: MIT
#include "tools/validate/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace mlff::validate {
namespace {

constexpr size_t kBlocks = 20;

void need_enough(std::span<const double> values) {
    if (values.size() < kBlocks)
        fail(Status::argument, "statistics need at least ", kBlocks, " samples, found ", values.size());
}

double mean_of(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Only slope, intercept and residual. `residuals`, unless nullptr, receives the values minus the line.
LineFit plain_fit(std::span<const double> values, double spacing, std::vector<double>* residuals = nullptr) {
    const auto count = static_cast<double>(values.size());
    const double middle = 0.5 * (count - 1), mean = mean_of(values);
    double covariance = 0, variance = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        const double x = static_cast<double>(i) - middle;
        covariance += x * (values[i] - mean);
        variance += x * x;
    }
    const double per_sample = covariance / variance;
    double squares = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        const double residual = values[i] - mean - per_sample * (static_cast<double>(i) - middle);
        squares += residual * residual;
        if (residuals) residuals->push_back(residual);
    }
    return {per_sample / spacing, mean - per_sample * middle, 0, std::sqrt(squares / count)};
}

// P(a, x) by its series, for x < a + 1.
double lower_gamma_series(double a, double x) {
    double term = 1 / a, sum = term;
    for (int i = 1; i < 100'000 && term > 1e-16 * sum; ++i) sum += term *= x / (a + i);
    return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}

// Q(a, x) = 1 - P(a, x) by its continued fraction (Lentz), for x >= a + 1.
double upper_gamma_fraction(double a, double x) {
    constexpr double kTiny = 1e-300;
    double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, result = d;
    for (int i = 1; i < 100'000; ++i) {
        const double numerator = -i * (i - a);
        b += 2;
        d = numerator * d + b;
        if (std::abs(d) < kTiny) d = kTiny;
        c = b + numerator / c;
        if (std::abs(c) < kTiny) c = kTiny;
        d = 1 / d;
        result *= d * c;
        if (std::abs(d * c - 1) < 1e-15) break;
    }
    return result * std::exp(a * std::log(x) - x - std::lgamma(a));
}

}  // namespace

LineFit fit_line(std::span<const double> values, double spacing) {
    need_enough(values);
    LineFit fit = plain_fit(values, spacing);
    std::vector<double> means, residuals;
    const size_t length = values.size() / kBlocks;
    for (size_t block = 0; block < kBlocks; ++block) means.push_back(mean_of(values.subspan(block * length, length)));
    const LineFit of_means = plain_fit(means, spacing * static_cast<double>(length), &residuals);
    const double n = kBlocks, variance_of_index = (n * n - 1) / 12;
    // Blocks shorter than the correlation time are not independent samples: the error would be too small by half.
    const double inefficiency = correlated_mean(residuals).inefficiency;
    fit.slope_error = of_means.residual_deviation * std::sqrt(inefficiency / ((n - 2) * variance_of_index)) /
                      (spacing * static_cast<double>(length));
    return fit;
}

CorrelatedMean correlated_mean(std::span<const double> values) {
    need_enough(values);
    CorrelatedMean result;
    result.mean = mean_of(values);
    const auto covariance = [&](size_t lag) {
        double sum = 0;
        for (size_t i = 0; i + lag < values.size(); ++i)
            sum += (values[i] - result.mean) * (values[i + lag] - result.mean);
        return sum / static_cast<double>(values.size());
    };
    const double variance = covariance(0);
    for (size_t lag = 1; variance > 0 && lag < values.size() / 2; ++lag) {
        const double correlation = covariance(lag) / variance;
        if (!(correlation > 0)) break;
        result.inefficiency += 2 * correlation;
    }
    result.error = std::sqrt(variance * result.inefficiency / static_cast<double>(values.size()));
    return result;
}

double chi_square_cdf(double value, double degrees) {
    const double a = 0.5 * degrees, x = 0.5 * value;
    if (std::isnan(x) || !(a > 0)) return std::numeric_limits<double>::quiet_NaN();
    if (x <= 0) return 0;
    if (std::isinf(x)) return 1;
    return x < a + 1 ? lower_gamma_series(a, x) : 1 - upper_gamma_fraction(a, x);
}

ShapeTest canonical_shape_test(std::span<const double> kinetic_energies, double degrees, double stride) {
    constexpr size_t kMostBins = 10, kLeastExpected = kShapeSamples / kMostBins;
    std::vector<double> samples;
    for (double at = 0; at < static_cast<double>(kinetic_energies.size()); at += std::max(1.0, stride))
        samples.push_back(kinetic_energies[static_cast<size_t>(at)]);
    const size_t bins = std::min(kMostBins, samples.size() / kLeastExpected);
    if (bins < 3) return {1, samples.size()};
    const double mean = mean_of(kinetic_energies),
                 expected = static_cast<double>(samples.size()) / static_cast<double>(bins);
    std::vector<double> counts(bins, 0.0);
    for (double sample : samples) {
        const double probability = chi_square_cdf(degrees * sample / mean, degrees);
        if (std::isnan(probability)) return {probability, samples.size()};
        counts[std::min(bins - 1, static_cast<size_t>(probability * static_cast<double>(bins)))] += 1;
    }
    double misfit = 0;
    for (double count : counts) misfit += (count - expected) * (count - expected) / expected;
    return {1 - chi_square_cdf(misfit, static_cast<double>(bins) - 2),
            samples.size()};  // the number of samples and their mean are fixed
}

double histogram_shift(std::span<const double> first, std::span<const double> second, double bin_width) {
    const double first_sum = std::accumulate(first.begin(), first.end(), 0.0),
                 second_sum = std::accumulate(second.begin(), second.end(), 0.0);
    if (!(first_sum > 0) || !(second_sum > 0)) return std::numeric_limits<double>::quiet_NaN();
    double difference = 0, area = 0;
    for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
        difference += first[i] / first_sum - second[i] / second_sum;
        area += std::abs(difference) * bin_width;
    }
    return area;
}

}  // namespace mlff::validate
