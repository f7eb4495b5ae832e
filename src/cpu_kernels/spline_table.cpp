// SPDX-License-Identifier: MIT
#include "cpu_kernels/spline_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace mlff::kernels {
namespace {

constexpr int kGhostNodes = 4;  // samples beyond either end
constexpr int kFewestIntervals = 128, kMostIntervals = 4096;

struct Columns {
    const SampleRows& sample;
    int count;
};

// Rows of samples at begin, begin + step, ...
std::vector<double> sample_rows(const Columns& columns, int row_count, double begin, double step, ThreadTeam& team) {
    const auto width = static_cast<size_t>(columns.count);
    std::vector<double> samples(static_cast<size_t>(row_count) * width);
    constexpr int kRowsPerChunk = 32;
    team.run((row_count + kRowsPerChunk - 1) / kRowsPerChunk, [&](int64_t chunk, int) {
        const int first = static_cast<int>(chunk) * kRowsPerChunk, count = std::min(row_count - first, kRowsPerChunk);
        std::array<double, kRowsPerChunk> distances;
        for (int row = 0; row < count; ++row) distances[static_cast<size_t>(row)] = begin + (first + row) * step;
        columns.sample({distances.data(), static_cast<size_t>(count)}, samples.data() + static_cast<size_t>(first) * width);
    });
    return samples;
}

// Coefficients of the spline through rows of samples, of which two at either end are ghosts.
std::vector<double> spline_coefficients(const std::vector<double>& samples, size_t width) {
    std::vector<double> coefficients(samples.size() - 4 * width);
    for (size_t i = 0; i < coefficients.size(); ++i) {
        const double* f = samples.data() + i;
        coefficients[i] = (13 * (f[0] + f[4 * width]) - 112 * (f[width] + f[3 * width]) + 438 * f[2 * width]) / 240;
    }
    return coefficients;
}

double largest_size(const std::vector<double>& values) {
    double largest = 0;
    for (double value : values) largest = std::max(largest, std::abs(value));
    return largest;
}

// The largest difference between the spline in the middle of each interval and `between`, samples there.
double largest_error(const std::vector<double>& coefficients, const double* between, size_t interval_count, size_t width) {
    double value[kShareCount], slope[kShareCount], largest = 0;
    spline_formula(0.5, value, slope);
    for (size_t i = 0; i < interval_count * width; ++i) {
        double sum = 0;
        for (size_t t = 0; t < kShareCount; ++t) sum += value[t] * coefficients[i + t * width];
        largest = std::max(largest, std::abs(sum - between[i]));
    }
    return largest;
}

// Nodes and the points between them are the nodes of half the step, of which kGhostNodes remain at either end.
std::vector<double> interleave(const std::vector<double>& nodes, const std::vector<double>& between, size_t width) {
    std::vector<double> merged;
    merged.reserve(nodes.size() + between.size());
    const size_t node_count = nodes.size() / width;
    for (size_t node = kGhostNodes / 2; node < node_count - kGhostNodes / 2; ++node) {
        const auto at = static_cast<std::ptrdiff_t>(node * width), end = static_cast<std::ptrdiff_t>((node + 1) * width);
        merged.insert(merged.end(), nodes.begin() + at, nodes.begin() + end);
        if (node + 1 < node_count - kGhostNodes / 2) merged.insert(merged.end(), between.begin() + at, between.begin() + end);
    }
    return merged;
}

}  // namespace

template <class Real>
SplineTable<Real>::SplineTable(const SampleRows& sample, std::span<const int> block_widths, double low, double high, ThreadTeam& team) {
    const int column_count = std::accumulate(block_widths.begin(), block_widths.end(), 0);
    constexpr double kTolerance = sizeof(Real) == 4 ? 2e-7 : 2e-10;
    const auto width = static_cast<size_t>(column_count);
    const Columns columns = {sample, column_count};
    int interval_count = kFewestIntervals;
    double step = (high - low) / interval_count;
    std::vector<double> samples = sample_rows(columns, interval_count + 1 + 2 * kGhostNodes, low - kGhostNodes * step, step, team);
    std::vector<double> coefficients;
    double worst_error = 0;  // of a value, relative to the largest value
    // Each round has twice the intervals. The nodes of the next round that lie between those of this one test it.
    for (;;) {
        coefficients = spline_coefficients(samples, width);
        const std::vector<double> between = sample_rows(columns, interval_count + 2 * kGhostNodes, low + (0.5 - kGhostNodes) * step, step, team);
        const double largest = largest_size(samples);
        worst_error = largest_error(coefficients, between.data() + kGhostNodes * width, static_cast<size_t>(interval_count), width);
        if (largest > 0) worst_error /= largest;
        if (worst_error <= kTolerance || 2 * interval_count > kMostIntervals) break;
        samples = interleave(samples, between, width);
        interval_count *= 2;
        step /= 2;
    }
    if (!(worst_error <= 1000 * kTolerance))
        fail(Status::unsupported, "the radial functions of this model vary too fast for a table (error ", worst_error, " with ", interval_count,
             " intervals); exact radial functions can be asked for");
    coefficients_.resize_discard(2 * coefficients.size());
    const size_t row_count = coefficients.size() / width;
    Real* to = coefficients_.data();
    size_t first = 0;
    for (const int block_width : block_widths) {
        for (size_t row = 0; row < row_count; ++row) {
            const double *here = coefficients.data() + row * width + first, *next = row + 1 < row_count ? here + width : here;
            for (int c = 0; c < block_width; ++c) *to++ = static_cast<Real>(here[c]);
            for (int c = 0; c < block_width; ++c) *to++ = static_cast<Real>(next[c] - here[c]);
        }
        first += static_cast<size_t>(block_width);
    }
    view_ = {coefficients_.data(), column_count, interval_count, low, 1 / step, static_cast<int>(row_count)};
}

template class SplineTable<float>;
template class SplineTable<double>;

}  // namespace mlff::kernels
