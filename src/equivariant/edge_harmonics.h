// SPDX-License-Identifier: MIT
// Spherical harmonics of edge directions, in the order and normalisation of spherical_harmonics.h. Written out up to
// degree 3 (equivariant/harmonics_formulas.inc).
#pragma once

#include "core/host_device.h"
#include "core/system_view.h"
#include "equivariant/irreps.h"
#include "equivariant/spherical_harmonics.h"

namespace mlff {

namespace edge_harmonics {
#define MLFF_FORMULA MLFF_HOST_DEVICE inline
#include "equivariant/harmonics_formulas.inc"
#undef MLFF_FORMULA
inline constexpr int kMost = harmonic_count(kMaxDegree);
}  // namespace edge_harmonics

// Y[l^2 + l + m] of a unit vector.
template <class Real>
MLFF_HOST_DEVICE inline void compute_edge_harmonics(int max_degree, const Vec3& n, Real* y) {
    double all[edge_harmonics::kMost];
    if (max_degree > edge_harmonics::kWrittenOutDegree)
        compute_harmonics(max_degree, n, all);
    else
        edge_harmonics::harmonics_formula(max_degree, n[0], n[1], n[2], all);
    for (int i = 0; i < harmonic_count(max_degree); ++i) y[i] = static_cast<Real>(all[i]);
}

// The gradient of  sum over lm of gradient[lm] Y_lm(v / |v|)  with respect to v, for v = length * direction.
template <class Real>
MLFF_HOST_DEVICE inline Vec3 reverse_edge_harmonics(int max_degree, const Vec3& n, double length,
                                                    const Real* gradient) {
    const auto count = static_cast<size_t>(harmonic_count(max_degree));
    if (max_degree > edge_harmonics::kWrittenOutDegree) {
        double values[edge_harmonics::kMost];
        Vec3 slopes[edge_harmonics::kMost];
        compute_harmonics_and_gradients(max_degree, {length * n[0], length * n[1], length * n[2]}, values, slopes);
        Vec3 sum{};
        for (size_t i = 0; i < count; ++i)
            for (size_t k = 0; k < 3; ++k) sum[k] += static_cast<double>(gradient[i]) * slopes[i][k];
        return sum;
    }
    double g[edge_harmonics::kWrittenOutHarmonics];
    for (size_t i = 0; i < count; ++i) g[i] = static_cast<double>(gradient[i]);
    Vec3 by_vector;
    edge_harmonics::reverse_harmonics_formula(max_degree, n[0], n[1], n[2], length, g, by_vector.data());
    return by_vector;
}

}  // namespace mlff
