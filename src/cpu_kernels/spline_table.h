// SPDX-License-Identifier: MIT
// Tables of functions of the distance, with quintic Hermite interpolation and a checked error bound.
//
// Between r_i and r_i+1 a function is the polynomial of degree five that matches its value, slope and curvature at both
// ends, so forces are smooth. Each node stores f_i, f_i+1 - f_i, h f'_i and h^2 f''_i.
#pragma once

#include <climits>
#include <functional>
#include <span>

#include "core/buffer.h"
#include "core/host_device.h"
#include "core/threads.h"
#include "cpu_kernels/kernel_table.h"

namespace mlff::kernels {

#define MLFF_FORMULA MLFF_HOST_DEVICE inline
#include "cpu_kernels/spline_formulas.inc"
#undef MLFF_FORMULA

// What an interpolation needs, in CPU or GPU memory.
template <class Real>
struct SplineTableView {
    const Real* coefficients =
        nullptr;  // [interval_count + 1][kSplineRows][column_count], or block by block (SplinePoints)
    int column_count = 0;
    int interval_count = 0;
    double low = 0;
    double inverse_step = 0;
    int row_count = 0;  // rows of all nodes
    // From this interval on nodes are one further than intervals: a break has two nodes. Distances are found in the
    // grid without regard to it. INT_MAX: there is no break.
    int first_above_break = INT_MAX;

    struct Place {
        int interval;
        double within;  // 0 to 1
    };
    MLFF_HOST_DEVICE Place interval_of(double distance) const {
        const double place = (distance - low) * inverse_step;
        int interval = static_cast<int>(place);
        interval = interval < 0 ? 0 : interval >= interval_count ? interval_count - 1 : interval;
        return {interval, place - interval};
    }

    MLFF_HOST_DEVICE SplineShares<Real> locate(double distance) const {
        const auto [interval, within] = interval_of(distance);
        double value[kSplineOrder], slope[kSplineOrder];
        spline_formula(within, value, slope);
        SplineShares<Real> shares;
        shares.interval = interval;
        for (int t = 0; t < kSplineOrder; ++t) {
            shares.value[t] = static_cast<Real>(value[t]);
            shares.slope[t] = static_cast<Real>(slope[t] * inverse_step);
        }
        return shares;
    }

    // For a table with a single block.
    MLFF_HOST_DEVICE SplinePoint<Real> at(double distance) const {
        const SplineShares<Real> shares = locate(distance);
        SplinePoint<Real> point;
        point.stride = column_count;
        const int node = shares.interval + (shares.interval >= first_above_break ? 1 : 0);
        point.row = coefficients + node * kSplineRows * point.stride;
        for (int t = 0; t < kSplineOrder; ++t) {
            point.value[t] = shares.value[t];
            point.slope[t] = shares.slope[t];
        }
        return point;
    }
};

// Fills rows[distance][column_count]. Called from several threads at a time.
using SampleRows = std::function<void(std::span<const double> distances, double* rows)>;

// Where functions are continuous and have a slope, but their curvature has a step. From there on they are `sample`.
struct SplineBreak {
    double distance = 0;  // 0: there is none
    SampleRows sample;
};

template <class Real>
class SplineTable {
public:
    // Functions are also sampled slightly beyond `low` and `high`, and must be smooth there too. Columns are grouped in
    // blocks of these widths; each block is a table [node][kSplineRows][width] of its own. `error_share` tightens the
    // error bound. Throws Error{unsupported} if it cannot be met, by far, with a table of reasonable size.
    SplineTable(const SampleRows& sample, std::span<const int> block_widths, double low, double high, ThreadTeam& team)
        : SplineTable(sample, {}, block_widths, low, high, team) {}
    SplineTable(const SampleRows& sample, const SplineBreak& upper, std::span<const int> block_widths, double low,
                double high, ThreadTeam& team, double error_share = 1);

    const SplineTableView<Real>& view() const { return view_; }
    SplineGrid grid() const { return {view_.low, view_.inverse_step, view_.interval_count}; }
    const Buffer<Real>& coefficients() const { return coefficients_; }

private:
    SplineTableView<Real> view_;
    Buffer<Real> coefficients_;
};

}  // namespace mlff::kernels
