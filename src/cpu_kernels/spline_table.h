// SPDX-License-Identifier: MIT
// Functions of the distance as a table: quintic Hermite interpolation, with an error that was checked.
//
// Between r_i and r_i+1 a function is the polynomial of degree five that has its value, slope and curvature at both
// ends, so that forces are smooth. What is stored of each node are f_i, f_i+1 - f_i, h f'_i and h^2 f''_i.
#pragma once

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

// What an interpolation needs, in memory of the CPU or the GPU.
template <class Real>
struct SplineTableView {
    const Real* coefficients =
        nullptr;  // [interval_count + 1][kSplineRows][column_count], or block by block (SplinePoints)
    int column_count = 0;
    int interval_count = 0;
    double low = 0;
    double inverse_step = 0;
    int row_count = 0;  // of all nodes

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

    // For a table of one block.
    MLFF_HOST_DEVICE SplinePoint<Real> at(double distance) const {
        const SplineShares<Real> shares = locate(distance);
        SplinePoint<Real> point;
        point.stride = column_count;
        point.row = coefficients + shares.interval * kSplineRows * point.stride;
        for (int t = 0; t < kSplineOrder; ++t) {
            point.value[t] = shares.value[t];
            point.slope[t] = shares.slope[t];
        }
        return point;
    }
};

// Fills rows[distance][column_count]; called by several threads at a time.
using SampleRows = std::function<void(std::span<const double> distances, double* rows)>;

template <class Real>
class SplineTable {
public:
    // Functions are sampled a little beyond `low` and `high` too, where they must be as smooth as between. Columns lie
    // in blocks of these widths, each of which is a table [node][kSplineRows][width] of its own. Throws
    // Error{unsupported} if the error bound cannot be met with a table of sensible size.
    SplineTable(const SampleRows& sample, std::span<const int> block_widths, double low, double high, ThreadTeam& team);

    const SplineTableView<Real>& view() const { return view_; }
    SplineGrid grid() const { return {view_.low, view_.inverse_step, view_.interval_count}; }
    const Buffer<Real>& coefficients() const { return coefficients_; }

private:
    SplineTableView<Real> view_;
    Buffer<Real> coefficients_;
};

}  // namespace mlff::kernels
