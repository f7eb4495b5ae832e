// SPDX-License-Identifier: MIT
// The Axilrod-Teller-Muto energy of three atoms, damped at short distances:
//   E = s9 C9 (3 cos a cos b cos c + 1) / (x y z)^3 / (1 + 6 (4/3)^(alpha + 2) (X Y Z / (x y z))^((alpha + 2) / 3))
// with the distances x, y, z, their pairs' radii X, Y, Z and C9 = sqrt(product of the three C6), in units of hartree.
#pragma once

#include <cmath>

#include "core/host_device.h"

namespace mlff::dispersion {

template <class Real>
struct TripleValue {
    Real energy = 0;  // for s9 C9 = 1
    Real pull[3]{};   // (dE/d distance) / distance, for each of the three
};

// `squares`: x^2, y^2, z^2. `radius`: (4/3)^3 X Y Z. `exponent`: (alpha + 2) / 3.
template <class Real>
MLFF_HOST_DEVICE inline TripleValue<Real> damped_triple(const Real (&squares)[3], Real radius, Real exponent) {
    const Real x = squares[0], y = squares[1], z = squares[2];
    const Real product2 = x * y * z, product = std::sqrt(product2), product3 = product * product2;
    const Real term = 6 * std::pow(radius / product, exponent), damping = 1 / (1 + term);
    const Real a = y + z - x, b = z + x - y, c = x + y - z;
    const Real cosines = Real(0.375) * a * b * c / product2;  // 3 cos cos cos
    const Real angular = (cosines + 1) / product3;
    TripleValue<Real> result;
    result.energy = angular * damping;
    // By the square of a distance s: d cosines = 3/8 (...) / product2 - cosines / s; product^-3 gives -3/2 / s; damping
    // gives +exponent/2 * term * damping / s. (dE/dr) / r = 2 dE/ds.
    const Real by_products[3] = {b * c * -1 + a * c + a * b, b * c - a * c + a * b, b * c + a * c - a * b};
    for (int i = 0; i < 3; ++i) {
        const Real by_cosines = Real(0.375) * by_products[i] / product2 - cosines / squares[i];
        result.pull[i] =
            2 * damping / product3 * by_cosines + result.energy * (exponent * term * damping - 3) / squares[i];
    }
    return result;
}

}  // namespace mlff::dispersion
