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

// NaN is the worst error.
double worse(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

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
            largest = worse(largest, error);
            left = right;
        }
    }
    return largest;
}

// Intervals between which functions are smooth.
struct Part {
    const SampleRows* sample;
    double begin;
    int interval_count;
    Samples samples;
};

}  // namespace

template <class Real>
SplineTable<Real>::SplineTable(const SampleRows& sample, const SplineBreak& upper, std::span<const int> block_widths,
                               double low, double high, ThreadTeam& team, double error_share) {
    constexpr double kTolerance = sizeof(Real) == 4 ? 2e-7 : 2e-10;
    const double tolerance = error_share * kTolerance;
    const int column_count = std::accumulate(block_widths.begin(), block_widths.end(), 0);
    const auto width = static_cast<size_t>(column_count);
    const bool has_break = upper.distance > low && upper.distance < high;
    std::vector<Part> parts;
    double worst_error = 0, step = 0;  // of a value, relative to the largest value
    int interval_count = 0;
    for (int wanted_count = kFewestIntervals;; wanted_count *= 2) {
        step = (high - low) / wanted_count;
        parts = {{&sample, low, wanted_count, {}}};
        if (has_break) {  // the break is at a node
            parts[0].interval_count = std::max(1, static_cast<int>(std::lround((upper.distance - low) / step)));
            step = (upper.distance - low) / parts[0].interval_count;
            const double above = std::ceil((high - upper.distance) / step);
            if (!(above <= 2.0 * wanted_count))
                fail(Status::unsupported, "the cutoff function of this model begins at ", upper.distance,
                     " A, too near the begin of a table; use exact radial functions (option exact_radial) instead");
            parts.push_back({&upper.sample, upper.distance, static_cast<int>(above), {}});
        }
        double largest = 0;
        worst_error = 0;
        interval_count = 0;
        for (Part& part : parts) {
            part.samples = {sample_rows(*part.sample, width, 2 * part.interval_count + 1 + 2 * static_cast<int>(kReach),
                                        part.begin - 0.5 * static_cast<double>(kReach) * step, 0.5 * step, team),
                            width};
            interval_count += part.interval_count;
            largest = std::max(largest, largest_size(part.samples.rows));
            const double error = largest_error(part.samples, static_cast<size_t>(part.interval_count));
            worst_error = worse(worst_error, error);
        }
        if (largest > 0) worst_error /= largest;
        if (worst_error <= tolerance || 2 * wanted_count > kMostIntervals) break;
    }
    if (!(worst_error <= 1000 * kTolerance))
        fail(Status::unsupported, "the radial functions of this model vary too fast for a table (error ", worst_error,
             " with ", interval_count, " intervals); use exact radial functions (option exact_radial) instead");
    const size_t node_count = static_cast<size_t>(interval_count) + parts.size();
    coefficients_.resize_discard(node_count * kSplineRows * width);
    Real* node_rows = coefficients_.data();
    size_t first = 0;
    for (const int block_width : block_widths) {
        const auto columns = static_cast<size_t>(block_width);
        for (const Part& part : parts)
            for (size_t i = 0; i <= static_cast<size_t>(part.interval_count); ++i, node_rows += kSplineRows * columns)
                for (size_t c = 0; c < columns; ++c) {
                    const Node node = part.samples.node(i, first + c);
                    const bool is_last = i == static_cast<size_t>(part.interval_count);
                    node_rows[c] = static_cast<Real>(node.value);
                    node_rows[columns + c] =
                        static_cast<Real>(is_last ? 0 : part.samples.at(2 * (i + 1), first + c) - node.value);
                    node_rows[2 * columns + c] = static_cast<Real>(node.slope);
                    node_rows[3 * columns + c] = static_cast<Real>(node.curvature);
                }
        first += columns;
    }
    view_ = {coefficients_.data(),
             column_count,
             interval_count,
             low,
             1 / step,
             static_cast<int>(node_count) * kSplineRows,
             has_break ? parts[0].interval_count : INT_MAX};
}

template class SplineTable<float>;
template class SplineTable<double>;

}  // namespace mlff::kernels
