// SPDX-License-Identifier: MIT
// How much a neighbour counts for the coordination number of an atom, with k = 16:
//   f(r) = 1 / (1 + exp(-k (R / r - 1))),  R = sum of the scaled covalent radii
#pragma once

#include <cmath>

#include "core/host_device.h"

namespace mlff::dispersion {

template <class Real>
struct Count {
    Real value = 0;
    Real slope = 0;  // df/dr
};

// `reach`: R, in the unit of r.
template <class Real>
MLFF_HOST_DEVICE inline Count<Real> count_neighbor(Real reach, Real r) {
    constexpr Real kSteepness = 16;
    const Real decay = std::exp(-kSteepness * (reach / r - 1));  // at most exp(16)
    const Real value = 1 / (1 + decay);
    return {value, -kSteepness * reach / (r * r) * value * value * decay};
}

}  // namespace mlff::dispersion
