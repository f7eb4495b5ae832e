// SPDX-License-Identifier: MIT
// Real spherical harmonics up to a given degree, in e3nn's order and "component" normalisation.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "core/host_device.h"
#include "core/system_view.h"
#include "equivariant/irreps.h"

namespace mlff {

inline constexpr int harmonic_count(int max_degree) { return (max_degree + 1) * (max_degree + 1); }

namespace harmonics_detail {

// With Q_lm = d^m P_l / dy^m (P_l the Legendre polynomial) and (z + i x)^m = c_m + i s_m, for unit vectors
//   Y_l,m = K_lm Q_lm(y) c_m,   Y_l,-m = K_lm Q_lm(y) s_m,   K_lm = sqrt((2l+1) (2 - [m=0]) (l-m)!/(l+m)!).
struct Factors {
    std::array<std::array<double, kMaxDegree + 2>, kMaxDegree + 1> legendre{};  // Q[l][m]; Q[l][l + 1] = 0
    std::array<double, kMaxDegree + 1> cosine{};                                // c_m
    std::array<double, kMaxDegree + 1> sine{};                                  // s_m
};

// (l - m) Q_l = (2l - 1) y Q_l-1 - (l + m - 1) Q_l-2 at fixed m, from Q_mm = (2m - 1)!!
MLFF_HOST_DEVICE inline Factors compute_factors(int max_degree, const Vec3& u) {
    Factors f;
    double diagonal = 1;
    for (int m = 0; m <= max_degree; ++m) {
        const auto order = static_cast<size_t>(m);
        if (m > 0) diagonal *= 2 * m - 1;
        f.legendre[order][order] = diagonal;
        for (int l = m + 1; l <= max_degree; ++l) {
            const auto degree = static_cast<size_t>(l);
            const double before = l - 2 < m ? 0 : f.legendre[degree - 2][order];
            f.legendre[degree][order] =
                ((2 * l - 1) * u[1] * f.legendre[degree - 1][order] - (l + m - 1) * before) / (l - m);
        }
        f.cosine[order] = m == 0 ? 1 : u[2] * f.cosine[order - 1] - u[0] * f.sine[order - 1];
        f.sine[order] = m == 0 ? 0 : u[2] * f.sine[order - 1] + u[0] * f.cosine[order - 1];
    }
    return f;
}

MLFF_HOST_DEVICE inline double normalisation(int l, int m) {
    double factorials = 1;  // (l + m)! / (l - m)!
    for (int k = l - m + 1; k <= l + m; ++k) factorials *= k;
    return std::sqrt((2 * l + 1) * (m == 0 ? 1.0 : 2.0) / factorials);
}

}  // namespace harmonics_detail

// Y[l^2 + l + m] of a unit vector, with sum over m of Y_lm^2 = 2l + 1. The polar axis is y: Y_1 = sqrt 3 (x, y, z).
// Degrees go up to kMaxDegree.
MLFF_HOST_DEVICE inline void compute_harmonics(int max_degree, const Vec3& direction, double* harmonics) {
    const harmonics_detail::Factors f = harmonics_detail::compute_factors(max_degree, direction);
    for (int l = 0; l <= max_degree; ++l)
        for (int m = 0; m <= l; ++m) {
            const auto order = static_cast<size_t>(m);
            const double polar = harmonics_detail::normalisation(l, m) * f.legendre[static_cast<size_t>(l)][order];
            harmonics[l * l + l + m] = polar * f.cosine[order];
            if (m > 0) harmonics[l * l + l - m] = polar * f.sine[order];
        }
}

// The same for the direction of `vector`, and gradients[lm] = dY_lm / dvector.
//
// The formulas above are polynomials in the components of u = v / r. With their gradient g with respect to u:
//   dY/dv = (g - u (u.g)) / r.
MLFF_HOST_DEVICE inline void compute_harmonics_and_gradients(int max_degree, const Vec3& vector, double* harmonics,
                                                             Vec3* gradients) {
    const double r = std::sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]);
    const Vec3 u = {vector[0] / r, vector[1] / r, vector[2] / r};
    compute_harmonics(max_degree, u, harmonics);
    const harmonics_detail::Factors f = harmonics_detail::compute_factors(max_degree, u);
    const auto project = [&](const Vec3& g) -> Vec3 {
        const double along = u[0] * g[0] + u[1] * g[1] + u[2] * g[2];
        return {(g[0] - u[0] * along) / r, (g[1] - u[1] * along) / r, (g[2] - u[2] * along) / r};
    };
    for (int l = 0; l <= max_degree; ++l)
        for (int m = 0; m <= l; ++m) {
            const auto order = static_cast<size_t>(m);
            const double k = harmonics_detail::normalisation(l, m);
            const double polar = k * f.legendre[static_cast<size_t>(l)][order];
            const double slope = k * f.legendre[static_cast<size_t>(l)][order + 1];
            const double c = m == 0 ? 0 : m * f.cosine[order - 1];  // dc_m/dz = ds_m/dx
            const double s = m == 0 ? 0 : m * f.sine[order - 1];    // ds_m/dz = -dc_m/dx
            gradients[l * l + l + m] = project({-polar * s, slope * f.cosine[order], polar * c});
            if (m > 0) gradients[l * l + l - m] = project({polar * c, slope * f.sine[order], polar * s});
        }
}

}  // namespace mlff
