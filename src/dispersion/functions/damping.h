// SPDX-License-Identifier: MIT
// The damped attraction of a pair, for C6 = 1. With Q = C8 / C6:
//   bj:    -s6 / (r^6 + R^6) - s8 Q / (r^8 + R^8),  R = a1 sqrt(Q) + a2
//   zero:  -s6 / (r^6 (1 + 6 (rs6 R / r)^alpha)) - s8 Q / (r^8 (1 + 6 (rs8 R / r)^(alpha + 2))),  R = the pair's radius
// All from the square of the distance, in any unit of length that R and Q share.
#pragma once

#include "core/host_device.h"
#include "dispersion/functions/quick_math.h"

namespace mlff::dispersion {

// What damping a pair of elements needs.
template <class Real>
struct alignas(16) PairForm {               // so that a GPU loads 16 bytes at once
    Real six = 0, eight = 0;                // s6, s8 Q
    Real six_radius = 0, eight_radius = 0;  // bj: R^6, R^8; zero: (rs6 R)^2, (rs8 R)^2
};

template <class Real>
struct PairValue {
    Real energy = 0;
    Real pull = 0;  // (dE/dr) / r
};

template <class Real>
MLFF_HOST_DEVICE inline PairValue<Real> bj_pair(const PairForm<Real>& form, Real r2) {
    const Real r4 = r2 * r2, r6 = r4 * r2;
    const Real six_sum = r6 + form.six_radius, eight_sum = r4 * r4 + form.eight_radius;
    const Real both = inverse(six_sum * eight_sum);  // one division for two
    const Real six = both * eight_sum, eight = both * six_sum;
    const Real six_energy = form.six * six, eight_energy = form.eight * eight;
    return {-six_energy - eight_energy, 6 * six_energy * six * r4 + 8 * eight_energy * eight * r6};
}

template <class Real>
MLFF_HOST_DEVICE inline Real whole_power(Real x, int exponent) {
    Real result = 1;
    for (; exponent > 0; exponent /= 2, x *= x)
        if (exponent % 2 == 1) result *= x;
    return result;
}

// `half_exponent`: alpha / 2, a whole number.
template <class Real>
MLFF_HOST_DEVICE inline PairValue<Real> zero_pair(const PairForm<Real>& form, int half_exponent, Real r2) {
    const Real r2_inverse = inverse(r2), r6_inverse = r2_inverse * r2_inverse * r2_inverse;
    const Real six_term = 6 * whole_power(form.six_radius * r2_inverse, half_exponent);
    const Real eight_term = 6 * whole_power(form.eight_radius * r2_inverse, half_exponent + 1);
    const Real six = inverse(1 + six_term), eight = inverse(1 + eight_term);
    const Real six_energy = form.six * six * r6_inverse, eight_energy = form.eight * eight * r6_inverse * r2_inverse;
    const auto exponent = static_cast<Real>(2 * half_exponent);
    return {-six_energy - eight_energy,
            (six_energy * (6 - exponent * (1 - six)) + eight_energy * (8 - (exponent + 2) * (1 - eight))) * r2_inverse};
}

// From 1 at `begin` to 0 at `end`, with continuous second derivatives.
template <class Real>
struct Fade {
    Real value = 1;
    Real slope = 0;  // by r
};
template <class Real>
MLFF_HOST_DEVICE inline Fade<Real> fade_out(Real r, Real begin, Real end) {
    if (!(r > begin)) return {};
    if (!(r < end)) return {0, 0};
    const Real width = end - begin, t = (end - r) / width;
    return {t * t * t * (10 + t * (6 * t - 15)), -30 * t * t * (1 - t) * (1 - t) / width};
}
template <class Real>
MLFF_HOST_DEVICE inline PairValue<Real> faded(const PairValue<Real>& pair, const Fade<Real>& fade, Real r) {
    return {pair.energy * fade.value, pair.pull * fade.value + pair.energy * fade.slope / r};
}

}  // namespace mlff::dispersion
