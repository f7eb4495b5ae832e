// SPDX-License-Identifier: MIT
// Functions of the distance as a table: quintic B-splines, with an error that was checked.
//
// Between r_i and r_i+1 a function is  sum over t < 6 of b_t(x) c[i + t],  x = (r - r_i) / h.  The coefficients
//   c_i = (13 f_i-2 - 112 f_i-1 + 438 f_i - 112 f_i+1 + 13 f_i+2) / 240
// reproduce polynomials of degree five; the spline has four continuous derivatives, so forces are smooth. What is stored and
// used are the c and their differences d[i] = c[i + 1] - c[i] (see SplinePoint): with the b adding up to 1,
//   value = c[i + 2] - b_0 d[i] - (b_0 + b_1) d[i+1] + (b_3 + b_4 + b_5) d[i+2] + (b_4 + b_5) d[i+3] + b_5 d[i+4].
#pragma once

#include <functional>
#include <span>

#include "core/buffer.h"
#include "core/host_device.h"
#include "core/threads.h"
#include "cpu_kernels/kernel_table.h"

namespace mlff::kernels {

inline constexpr int kShareCount = kSplineOrder + 1;

#define MLFF_FORMULA MLFF_HOST_DEVICE inline
#include "cpu_kernels/spline_formulas.inc"
#undef MLFF_FORMULA

// What an interpolation needs, in memory of the CPU or the GPU.
template <class Real>
struct SplineTableView {
    const Real* coefficients = nullptr;  // [row_count][c, d][column_count], or block by block (SplinePoints)
    int column_count = 0;
    int interval_count = 0;
    double low = 0;
    double inverse_step = 0;
    int row_count = 0;

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
        double value[kShareCount], slope[kShareCount];
        spline_formula(within, value, slope);
        SplineShares<Real> shares;
        shares.interval = interval;
        double below = 0, above = 1, slopes_below = 0;  // sums of the b before, of those from here on, and of the slopes before
        for (int t = 0; t < kSplineOrder; ++t) {
            below += value[t];
            above -= value[t];
            slopes_below += slope[t];
            shares.value[t] = static_cast<Real>(t < 2 ? -below : above);
            shares.slope[t] = static_cast<Real>(-slopes_below * inverse_step);
        }
        return shares;
    }

    // For a table of one block.
    MLFF_HOST_DEVICE SplinePoint<Real> at(double distance) const {
        const SplineShares<Real> shares = locate(distance);
        SplinePoint<Real> point;
        point.stride = 2 * column_count;
        const Real* row = coefficients + shares.interval * point.stride;
        point.center = row + 2 * point.stride;
        point.differences = row + column_count;
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
    // Functions are sampled a little beyond `low` and `high` too, where they must be as smooth as between. Columns lie in blocks of these widths, each of which is a
    // table [row][c, d][width] of its own.
    // Throws Error{unsupported} if the error bound cannot be met with a table of sensible size.
    SplineTable(const SampleRows& sample, std::span<const int> block_widths, double low, double high, ThreadTeam& team);

    const SplineTableView<Real>& view() const { return view_; }
    SplineGrid grid() const { return {view_.low, view_.inverse_step, view_.interval_count}; }
    const Buffer<Real>& coefficients() const { return coefficients_; }

private:
    SplineTableView<Real> view_;
    Buffer<Real> coefficients_;
};

}  // namespace mlff::kernels
