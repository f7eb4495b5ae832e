// SPDX-License-Identifier: MIT
// Spherical harmonics of edge directions in the order and normalisation of spherical_harmonics.h, written out up to degree 3.
#pragma once

#include "core/host_device.h"
#include "core/system_view.h"
#include "mace/irreps.h"
#include "mace/spherical_harmonics.h"

namespace mlff::mace {

namespace edge_harmonics {
inline constexpr int kWrittenOut = 3;
inline constexpr int kMost = harmonic_count(kMaxDegree);
}  // namespace edge_harmonics

// Y[l^2 + l + m] of a unit vector.
template <class Real>
MLFF_HOST_DEVICE inline void compute_edge_harmonics(int max_degree, const Vec3& n, Real* y) {
    if (max_degree > edge_harmonics::kWrittenOut) {
        double all[edge_harmonics::kMost];
        compute_harmonics(max_degree, n, all);
        for (int i = 0; i < harmonic_count(max_degree); ++i) y[i] = static_cast<Real>(all[i]);
        return;
    }
    constexpr double kOne = 1.7320508075688772;                                    // sqrt 3
    constexpr double kTwo = 3.872983346207417, kTwoMiddle = 2.23606797749979;        // sqrt 15, sqrt 5
    constexpr double kThreeOuter = 2.091650066335189, kThreeXyz = 10.246950765959598;  // sqrt(35/8), sqrt 105
    constexpr double kThreeInner = 1.6201851746019651, kThreeMiddle = 2.6457513110645907;  // sqrt(21/8), sqrt 7
    const double x = n[0], Y = n[1], z = n[2];
    y[0] = 1;
    if (max_degree < 1) return;
    y[1] = static_cast<Real>(kOne * x);
    y[2] = static_cast<Real>(kOne * Y);
    y[3] = static_cast<Real>(kOne * z);
    if (max_degree < 2) return;
    const double xx = x * x, yy = Y * Y, zz = z * z;
    y[4] = static_cast<Real>(kTwo * x * z);
    y[5] = static_cast<Real>(kTwo * x * Y);
    y[6] = static_cast<Real>(kTwoMiddle * (yy - 0.5 * (xx + zz)));
    y[7] = static_cast<Real>(kTwo * Y * z);
    y[8] = static_cast<Real>(0.5 * kTwo * (zz - xx));
    if (max_degree < 3) return;
    y[9] = static_cast<Real>(kThreeOuter * x * (3 * zz - xx));
    y[10] = static_cast<Real>(kThreeXyz * x * Y * z);
    y[11] = static_cast<Real>(kThreeInner * x * (4 * yy - xx - zz));
    y[12] = static_cast<Real>(0.5 * kThreeMiddle * Y * (2 * yy - 3 * xx - 3 * zz));
    y[13] = static_cast<Real>(kThreeInner * z * (4 * yy - xx - zz));
    y[14] = static_cast<Real>(0.5 * kThreeXyz * Y * (zz - xx));
    y[15] = static_cast<Real>(kThreeOuter * z * (zz - 3 * xx));
}

// The gradient of sum over lm of harmonics_gradient[lm] Y_lm(v / |v|) by v, for v = length * direction.
//
// The harmonics above are polynomials in the components of n; their gradient by n, freed of its part along n and divided by
// the length, is the gradient by v.
template <class Real>
MLFF_HOST_DEVICE inline Vec3 reverse_edge_harmonics(int max_degree, const Vec3& n, double length, const Real* gradient) {
    if (max_degree > edge_harmonics::kWrittenOut) {
        const auto count = static_cast<size_t>(harmonic_count(max_degree));
        double values[edge_harmonics::kMost];
        Vec3 slopes[edge_harmonics::kMost];
        compute_harmonics_and_gradients(max_degree, {length * n[0], length * n[1], length * n[2]}, values, slopes);
        Vec3 sum{};
        for (size_t i = 0; i < count; ++i)
            for (size_t k = 0; k < 3; ++k) sum[k] += static_cast<double>(gradient[i]) * slopes[i][k];
        return sum;
    }
    constexpr double kOne = 1.7320508075688772;                                    // sqrt 3
    constexpr double kTwo = 3.872983346207417, kTwoMiddle = 2.23606797749979;        // sqrt 15, sqrt 5
    constexpr double kThreeOuter = 2.091650066335189, kThreeXyz = 10.246950765959598;  // sqrt(35/8), sqrt 105
    constexpr double kThreeInner = 1.6201851746019651, kThreeMiddle = 2.6457513110645907;  // sqrt(21/8), sqrt 7
    const double x = n[0], y = n[1], z = n[2];
    double gx = 0, gy = 0, gz = 0;
    const auto g = [&](int i) { return static_cast<double>(gradient[i]); };
    if (max_degree >= 1) {
        gx += kOne * g(1);
        gy += kOne * g(2);
        gz += kOne * g(3);
    }
    if (max_degree >= 2) {
        gx += kTwo * (z * g(4) + y * g(5) - x * g(8)) - kTwoMiddle * x * g(6);
        gy += kTwo * (x * g(5) + z * g(7)) + 2 * kTwoMiddle * y * g(6);
        gz += kTwo * (x * g(4) + y * g(7) + z * g(8)) - kTwoMiddle * z * g(6);
    }
    if (max_degree >= 3) {
        const double xx = x * x, yy = y * y, zz = z * z;
        gx += kThreeOuter * (3 * (zz - xx) * g(9) - 6 * x * z * g(15)) + kThreeXyz * (y * z * g(10) - x * y * g(14)) +
              kThreeInner * ((4 * yy - 3 * xx - zz) * g(11) - 2 * x * z * g(13)) - 3 * kThreeMiddle * x * y * g(12);
        gy += kThreeXyz * (x * z * g(10) + 0.5 * (zz - xx) * g(14)) + 8 * kThreeInner * y * (x * g(11) + z * g(13)) +
              0.5 * kThreeMiddle * (6 * yy - 3 * xx - 3 * zz) * g(12);
        gz += kThreeOuter * (6 * x * z * g(9) + 3 * (zz - xx) * g(15)) + kThreeXyz * (x * y * g(10) + y * z * g(14)) +
              kThreeInner * (-2 * x * z * g(11) + (4 * yy - xx - 3 * zz) * g(13)) - 3 * kThreeMiddle * y * z * g(12);
    }
    const double along = gx * x + gy * y + gz * z;
    return {(gx - along * x) / length, (gy - along * y) / length, (gz - along * z) / length};
}

}  // namespace mlff::mace
