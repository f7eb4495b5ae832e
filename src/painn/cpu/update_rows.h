// SPDX-License-Identifier: MIT
// What an update does between its dense layers, channel by channel, for one atom; formulas in painn/reference/update.h.
// `gates` are a_ss, a_sv, a_vv, F numbers each.
#pragma once

namespace mlff::painn::cpu {

// Rows of F of x, y and z, so many numbers from one component to the next.
template <class Real>
struct Components {
    Real* first = nullptr;
    int stride = 0;

    Real* operator[](int component) const { return first + component * stride; }
};
// U v and V v of one atom, V v right behind U v.
template <class Real>
using MixedRows = Components<const Real>;

// norms[F] = sqrt(sum over x, y, z of (V v)^2 + floor), and one over them
template <class Real>
void compute_norms(int hidden, MixedRows<Real> mixed, Real* norms, Real* inverse_norms);

// scalars[F] += a_ss + a_sv * dot
template <class Real>
void add_to_scalars(int hidden, MixedRows<Real> mixed, const Real* gates, Real* scalars);
// updated[3][F] = vectors + a_vv * (U v)
template <class Real>
void update_vectors(int hidden, MixedRows<Real> mixed, const Real* gates, Components<const Real> vectors, Real* updated);

// gates_gradient, from the gradients after the update; vectors_gradient [3][F] may be nullptr: zero, and a_vv has none.
template <class Real>
void reverse_gates(int hidden, MixedRows<Real> mixed, const Real* scalars_gradient, const Real* vectors_gradient, Real* gates_gradient);

// The gradient of U v and V v, from the same and the gradient of the norms.
template <class Real>
struct MixedGradient {
    MixedRows<Real> mixed;
    const Real *inverse_norms, *gates;
    const Real *scalars_gradient, *vectors_gradient, *norms_gradient;
    Components<Real> mixed_gradient;
};
template <class Real>
void reverse_mixed(int hidden, const MixedGradient<Real>& rows);

// What an atom sends with its vectors, phi_v v, and in reverse the gradients of both; those of v are added to.
template <class Real>
void weigh_vectors(int hidden, const Real* phi, const Real* vectors, Real* sent);
template <class Real>
void reverse_weighing(int hidden, const Real* phi, const Real* vectors, const Real* sent_gradient, Real* phi_gradient, Real* vectors_gradient);

}  // namespace mlff::painn::cpu
