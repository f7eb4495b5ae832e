// SPDX-License-Identifier: MIT
// Real spherical harmonics of all degrees up to a largest one, in the order and normalisation of e3nn ("component").
#pragma once

#include <cstdint>

#include "core/system_view.h"

namespace mlff::mace {

inline constexpr int harmonic_count(int max_degree) { return (max_degree + 1) * (max_degree + 1); }

// Y[l^2 + l + m] of a unit vector, with sum over m of Y_lm^2 = 2l + 1. The polar axis is y: Y_1 = sqrt 3 (x, y, z).
void compute_harmonics(int max_degree, const Vec3& direction, double* harmonics);

// The same for the direction of `vector`, and gradients[lm] = dY_lm / dvector.
void compute_harmonics_and_gradients(int max_degree, const Vec3& vector, double* harmonics, Vec3* gradients);

}  // namespace mlff::mace
