// SPDX-License-Identifier: MIT
// Spherical harmonics of edge directions in the order and normalisation of spherical_harmonics.h, written out up to degree 3.
#pragma once

#include "core/system_view.h"

namespace mlff::mace::cpu {

// Y[l^2 + l + m] of a unit vector.
template <class Real>
void compute_edge_harmonics(int max_degree, const Vec3& direction, Real* harmonics);

// The gradient of sum over lm of harmonics_gradient[lm] Y_lm(v / |v|) by v, for v = length * direction.
template <class Real>
Vec3 reverse_edge_harmonics(int max_degree, const Vec3& direction, double length, const Real* harmonics_gradient);

}  // namespace mlff::mace::cpu
