// SPDX-License-Identifier: MIT
#include "cpu_kernels/spline_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace mlff::kernels {
namespace {

constexpr int kFewestIntervals = 64, kMostIntervals = 4096;

// Samples are half an interval apart. Slopes and curvatures at a node come from eighth-order differences, with four
// samples on either side.
constexpr size_t kReach = 4;
constexpr std::array<double, kReach> kSlope = {4.0 / 5, -1.0 / 5, 4.0 / 105,
                                               -1.0 / 280};  // coefficients of f(q k) - f(-q k), for q f'
constexpr double kCurvatureHere = -205.0 / 72;
constexpr std::array<double, kReach> kCurvature = {8.0 / 5, -1.0 / 5, 8.0 / 315,
                                                   -1.0 / 560};  // coefficients of f(q k) + f(-q k), for q^2 f''

// Samples of `width` functions at begin, begin + step, ...
std::vector<double> sample_rows(const SampleRows& sample, size_t width, int row_count, double begin, double step,
                                ThreadTeam& team) {
    std::vector<double> samples(static_cast<size_t>(row_count) * width);
    constexpr int kRowsPerChunk = 32;
    team.run((row_count + kRowsPerChunk - 1) / kRowsPerChunk, [&](int64_t chunk, int) {
        const int first = static_cast<int>(chunk) * kRowsPerChunk, count = std::min(row_count - first, kRowsPerChunk);
        std::array<double, kRowsPerChunk> distances;
        for (int row = 0; row < count; ++row) distances[static_cast<size_t>(row)] = begin + (first + row) * step;
        sample({distances.data(), static_cast<size_t>(count)}, samples.data() + static_cast<size_t>(first) * width);
    });
    return samples;
}

// One function at a node.
struct Node {
    double value, slope, curvature;  // f, h f', h^2 f''
};

// Functions sampled at both ends and in the middle of all intervals.
struct Samples {
    std::vector<double> rows;
    size_t width;

    double at(size_t half_steps, size_t column) const { return rows[(kReach + half_steps) * width + column]; }
    Node node(size_t i, size_t column) const {
        const size_t row = 2 * i;
        Node node = {at(row, column), 0, kCurvatureHere * at(row, column)};
        for (size_t k = 1; k <= kReach; ++k) {
            const double before = rows[(kReach + row - k) * width + column],
                         after = rows[(kReach + row + k) * width + column];
            node.slope += kSlope[k - 1] * (after - before);
            node.curvature += kCurvature[k - 1] * (after + before);
        }
        return {node.value, 2 * node.slope, 4 * node.curvature};
    }
};

double largest_size(const std::vector<double>& values) {
    double largest = 0;
    for (double value : values) largest = std::max(largest, std::abs(value));
    return largest;
}

// The largest difference between interpolation and sample in the middle of the intervals, where the error is largest.
double largest_error(const Samples& samples, size_t interval_count) {
    double value[kSplineOrder], slope[kSplineOrder], largest = 0;
    spline_formula(0.5, value, slope);
    for (size_t column = 0; column < samples.width; ++column) {
        Node left = samples.node(0, column);
        for (size_t i = 0; i < interval_count; ++i) {
            const Node right = samples.node(i + 1, column);
            const double found = left.value + value[0] * (right.value - left.value) + value[1] * left.slope +
                                 value[2] * left.curvature + value[3] * right.slope + value[4] * right.curvature;
            const double error = std::abs(found - samples.at(2 * i + 1, column));
            if (!(error <= largest)) largest = error;  // also if it is NaN
            left = right;
        }
    }
    return largest;
}

}  // namespace

template <class Real>
SplineTable<Real>::SplineTable(const SampleRows& sample, std::span<const int> block_widths, double low, double high,
                               ThreadTeam& team) {
    constexpr double kTolerance = sizeof(Real) == 4 ? 2e-7 : 2e-10;
    const int column_count = std::accumulate(block_widths.begin(), block_widths.end(), 0);
    const auto width = static_cast<size_t>(column_count);
    Samples samples;
    double worst_error = 0, step = 0;  // of a value, relative to the largest value
    int interval_count = kFewestIntervals;
    for (;; interval_count *= 2) {
        step = (high - low) / interval_count;
        samples = {sample_rows(sample, width, 2 * interval_count + 1 + 2 * static_cast<int>(kReach),
                               low - 0.5 * static_cast<double>(kReach) * step, 0.5 * step, team),
                   width};
        const double largest = largest_size(samples.rows);
        worst_error = largest_error(samples, static_cast<size_t>(interval_count));
        if (largest > 0) worst_error /= largest;
        if (worst_error <= kTolerance || 2 * interval_count > kMostIntervals) break;
    }
    if (!(worst_error <= 1000 * kTolerance))
        fail(Status::unsupported, "the radial functions of this model vary too fast for a table (error ", worst_error,
             " with ", interval_count, " intervals); use exact radial functions (option exact_radial) instead");
    const size_t node_count = static_cast<size_t>(interval_count) + 1;
    coefficients_.resize_discard(node_count * kSplineRows * width);
    Real* node_rows = coefficients_.data();
    size_t first = 0;
    for (const int block_width : block_widths) {
        const auto columns = static_cast<size_t>(block_width);
        for (size_t i = 0; i < node_count; ++i, node_rows += kSplineRows * columns)
            for (size_t c = 0; c < columns; ++c) {
                const Node node = samples.node(i, first + c);
                node_rows[c] = static_cast<Real>(node.value);
                node_rows[columns + c] =
                    static_cast<Real>(i + 1 < node_count ? samples.at(2 * (i + 1), first + c) - node.value : 0);
                node_rows[2 * columns + c] = static_cast<Real>(node.slope);
                node_rows[3 * columns + c] = static_cast<Real>(node.curvature);
            }
        first += columns;
    }
    view_ = {
        coefficients_.data(), column_count, interval_count, low, 1 / step, static_cast<int>(node_count) * kSplineRows};
}

template class SplineTable<float>;
template class SplineTable<double>;

}  // namespace mlff::kernels
