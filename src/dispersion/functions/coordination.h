// SPDX-License-Identifier: MIT
// How much a neighbour counts for the coordination number of an atom, with k = 16:
//   f(r) = 1 / (1 + exp(-k (R / r - 1))),  R = sum of the scaled covalent radii
#pragma once

#include "core/host_device.h"
#include "dispersion/functions/quick_math.h"

namespace mlff::dispersion {

template <class Real>
struct Count {
    Real value = 0;
    Real slope = 0;  // df/dr
};

// `reach`: R, in the unit of r. `inverse_r`: 1 / r.
template <class Real>
MLFF_HOST_DEVICE inline Count<Real> count_neighbor_at(Real reach, Real inverse_r) {
    constexpr Real kSteepness = 16;
    const Real scaled = kSteepness * reach * inverse_r;
    const Real decay = exponential(kSteepness - scaled);  // at most exp(16)
    const Real value = inverse(1 + decay);
    return {value, -scaled * inverse_r * value * value * decay};
}
template <class Real>
MLFF_HOST_DEVICE inline Count<Real> count_neighbor(Real reach, Real r) {
    return count_neighbor_at(reach, 1 / r);
}

}  // namespace mlff::dispersion
