// SPDX-License-Identifier: MIT
// What an update does between its dense layers, channel by channel, for one atom; formulas in painn/reference/update.h.
// `mixed` is [3][U v, V v][F], `gates` are a_ss, a_sv, a_vv, F numbers each.
#pragma once

namespace mlff::painn::cpu {

// norms[F] = sqrt(sum over x, y, z of (V v)^2 + floor)
template <class Real>
void compute_norms(int hidden, const Real* mixed, Real* norms);

// scalars[F] += a_ss + a_sv * dot;  vectors[3][F] += a_vv * (U v), unless that is nullptr
template <class Real>
void apply_gates(int hidden, const Real* mixed, const Real* gates, Real* scalars, Real* vectors);

// gates_gradient, from the gradients after the update; vectors_gradient may be nullptr: zero, and a_vv has none.
template <class Real>
void reverse_gates(int hidden, const Real* mixed, const Real* scalars_gradient, const Real* vectors_gradient, Real* gates_gradient);

// mixed_gradient, from the same and the gradient of the norms.
template <class Real>
struct MixedGradient {
    const Real *mixed, *norms, *gates;
    const Real *scalars_gradient, *vectors_gradient, *norms_gradient;
    Real* mixed_gradient;
};
template <class Real>
void reverse_mixed(int hidden, const MixedGradient<Real>& rows);

}  // namespace mlff::painn::cpu
