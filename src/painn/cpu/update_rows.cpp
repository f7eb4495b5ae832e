// SPDX-License-Identifier: MIT
#include "painn/cpu/update_rows.h"

#include <cmath>

#include "painn/weights.h"

namespace mlff::painn::cpu {
namespace {

// The rows U v and V v of x, y and z at the same channel.
template <class Real>
struct MixedPointers {
    MixedPointers(MixedRows<Real> mixed, int hidden) : u{mixed[0], mixed[1], mixed[2]}, v{mixed[0] + hidden, mixed[1] + hidden, mixed[2] + hidden} {}
    const Real* __restrict u[3];
    const Real* __restrict v[3];
    Real dot(int k) const { return u[0][k] * v[0][k] + u[1][k] * v[1][k] + u[2][k] * v[2][k]; }
};

}  // namespace

template <class Real>
void compute_norms(int hidden, MixedRows<Real> mixed, Real* __restrict norms, Real* __restrict inverse_norms) {
    const MixedPointers<Real> rows(mixed, hidden);
    for (int k = 0; k < hidden; ++k) {
        norms[k] = std::sqrt(rows.v[0][k] * rows.v[0][k] + rows.v[1][k] * rows.v[1][k] + rows.v[2][k] * rows.v[2][k] + static_cast<Real>(kNormFloor));
        inverse_norms[k] = 1 / norms[k];
    }
}

template <class Real>
void add_to_scalars(int hidden, MixedRows<Real> mixed, const Real* __restrict gates, Real* __restrict scalars) {
    const MixedPointers<Real> rows(mixed, hidden);
    for (int k = 0; k < hidden; ++k) scalars[k] += gates[k] + gates[hidden + k] * rows.dot(k);
}

template <class Real>
void update_vectors(int hidden, MixedRows<Real> mixed, const Real* gates, Components<const Real> vectors, Real* updated) {
    const Real* __restrict a_vv = gates + 2 * hidden;
    for (int c = 0; c < 3; ++c) {
        const Real *__restrict before = vectors[c], *__restrict u = mixed[c];
        Real* __restrict after = updated + c * hidden;
        for (int k = 0; k < hidden; ++k) after[k] = before[k] + a_vv[k] * u[k];
    }
}

template <class Real>
void reverse_gates(int hidden, MixedRows<Real> mixed, const Real* __restrict scalars_gradient, const Real* __restrict vectors_gradient, Real* __restrict gates_gradient) {
    const MixedPointers<Real> rows(mixed, hidden);
    for (int k = 0; k < hidden; ++k) {
        gates_gradient[k] = scalars_gradient[k];
        gates_gradient[hidden + k] = scalars_gradient[k] * rows.dot(k);
    }
    if (!vectors_gradient) return;
    const Real *x = vectors_gradient, *y = x + hidden, *z = y + hidden;
    for (int k = 0; k < hidden; ++k) gates_gradient[2 * hidden + k] = x[k] * rows.u[0][k] + y[k] * rows.u[1][k] + z[k] * rows.u[2][k];
}

template <class Real>
void reverse_mixed(int hidden, const MixedGradient<Real>& in) {
    const MixedPointers<Real> rows(in.mixed, hidden);
    const Real *__restrict inverse_norms = in.inverse_norms, *__restrict a_sv = in.gates + hidden, *__restrict a_vv = in.gates + 2 * hidden;
    const Real *__restrict by_scalars = in.scalars_gradient, *__restrict by_norms = in.norms_gradient;
    for (int c = 0; c < 3; ++c) {
        const Real *__restrict u = rows.u[c], *__restrict v = rows.v[c];
        Real *__restrict by_u = in.mixed_gradient[c], *__restrict by_v = by_u + hidden;
        for (int k = 0; k < hidden; ++k) {
            const Real by_dot = by_scalars[k] * a_sv[k];
            by_u[k] = by_dot * v[k];
            by_v[k] = by_dot * u[k] + by_norms[k] * inverse_norms[k] * v[k];
        }
        if (!in.vectors_gradient) continue;
        const Real* __restrict by_vectors = in.vectors_gradient + c * hidden;
        for (int k = 0; k < hidden; ++k) by_u[k] += by_vectors[k] * a_vv[k];
    }
}

template <class Real>
void weigh_vectors(int hidden, const Real* __restrict phi, const Real* vectors, Real* sent) {
    for (int c = 0; c < 3; ++c) {
        const Real* __restrict from = vectors + c * hidden;
        Real* __restrict to = sent + c * hidden;
        for (int k = 0; k < hidden; ++k) to[k] = phi[k] * from[k];
    }
}

template <class Real>
void reverse_weighing(int hidden, const Real* __restrict phi, const Real* vectors, const Real* sent_gradient, Real* __restrict phi_gradient, Real* vectors_gradient) {
    const Real *__restrict x = vectors, *__restrict y = x + hidden, *__restrict z = y + hidden;
    const Real *__restrict by_x = sent_gradient, *__restrict by_y = by_x + hidden, *__restrict by_z = by_y + hidden;
    for (int k = 0; k < hidden; ++k) phi_gradient[k] = x[k] * by_x[k] + y[k] * by_y[k] + z[k] * by_z[k];
    for (int c = 0; c < 3; ++c) {
        const Real* __restrict by_sent = sent_gradient + c * hidden;
        Real* __restrict to = vectors_gradient + c * hidden;
        for (int k = 0; k < hidden; ++k) to[k] += phi[k] * by_sent[k];
    }
}

template void compute_norms(int, MixedRows<float>, float*, float*);
template void add_to_scalars(int, MixedRows<float>, const float*, float*);
template void update_vectors(int, MixedRows<float>, const float*, Components<const float>, float*);
template void reverse_gates(int, MixedRows<float>, const float*, const float*, float*);
template void reverse_mixed(int, const MixedGradient<float>&);
template void weigh_vectors(int, const float*, const float*, float*);
template void reverse_weighing(int, const float*, const float*, const float*, float*, float*);

template void compute_norms(int, MixedRows<double>, double*, double*);
template void add_to_scalars(int, MixedRows<double>, const double*, double*);
template void update_vectors(int, MixedRows<double>, const double*, Components<const double>, double*);
template void reverse_gates(int, MixedRows<double>, const double*, const double*, double*);
template void reverse_mixed(int, const MixedGradient<double>&);
template void weigh_vectors(int, const double*, const double*, double*);
template void reverse_weighing(int, const double*, const double*, const double*, double*, double*);

}  // namespace mlff::painn::cpu
