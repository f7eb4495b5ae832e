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

// The B-splines b_t(x) and their slopes.
MLFF_HOST_DEVICE inline void spline_shares(double x, double* value, double* slope) {
    constexpr double kInverse = 1.0 / 120;  // a division takes long on a GPU
    const double y = 1 - x, x2 = x * x, x4 = x2 * x2, y2 = y * y;
    value[0] = y2 * y2 * y * kInverse;
    value[1] = (26 + x * (-50 + x * (20 + x * (20 + x * (-20 + 5 * x))))) * kInverse;
    value[2] = (66 + x2 * (-60 + x2 * (30 - 10 * x))) * kInverse;
    value[3] = (26 + x * (50 + x * (20 + x * (-20 + x * (-20 + 10 * x))))) * kInverse;
    value[4] = (1 + x * (5 + x * (10 + x * (10 + x * (5 - 5 * x))))) * kInverse;
    value[5] = x4 * x * kInverse;
    slope[0] = -y2 * y2 * (5 * kInverse);
    slope[1] = (-50 + x * (40 + x * (60 + x * (-80 + 25 * x)))) * kInverse;
    slope[2] = x * (-120 + x2 * (120 - 50 * x)) * kInverse;
    slope[3] = (50 + x * (40 + x * (-60 + x * (-80 + 50 * x)))) * kInverse;
    slope[4] = (5 + x * (20 + x * (30 + x * (20 - 25 * x)))) * kInverse;
    slope[5] = x4 * (5 * kInverse);
}

// What an interpolation needs, in memory of the CPU or the GPU.
template <class Real>
struct SplineTableView {
    const Real* coefficients = nullptr;  // [interval_count + 5][c, d][column_count]
    int column_count = 0;
    int interval_count = 0;
    double low = 0;
    double inverse_step = 0;

    MLFF_HOST_DEVICE SplineShares<Real> locate(double distance) const {
        const double place = (distance - low) * inverse_step;
        int interval = static_cast<int>(place);
        interval = interval < 0 ? 0 : interval >= interval_count ? interval_count - 1 : interval;
        double value[kShareCount], slope[kShareCount];
        spline_shares(place - interval, value, slope);
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
    // Functions are sampled a little beyond `low` and `high` too, where they must be as smooth as between.
    // Throws Error{unsupported} if the error bound cannot be met with a table of sensible size.
    SplineTable(const SampleRows& sample, int column_count, double low, double high, ThreadTeam& team);

    SplinePoint<Real> at(double distance) const { return view_.at(distance); }

    const SplineTableView<Real>& view() const { return view_; }
    const Buffer<Real>& coefficients() const { return coefficients_; }

private:
    SplineTableView<Real> view_;
    Buffer<Real> coefficients_;
};

}  // namespace mlff::kernels
