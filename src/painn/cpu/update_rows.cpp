// SPDX-License-Identifier: MIT
#include "painn/cpu/update_rows.h"

#include <cmath>

#include "painn/weights.h"

namespace mlff::painn::cpu {
namespace {

// The rows U v and V v of x, y and z at the same channel.
template <class Real>
struct MixedRows {
    MixedRows(const Real* mixed, int hidden) : u{mixed, mixed + 2 * hidden, mixed + 4 * hidden}, v{mixed + hidden, mixed + 3 * hidden, mixed + 5 * hidden} {}
    const Real* __restrict u[3];
    const Real* __restrict v[3];
    Real dot(int k) const { return u[0][k] * v[0][k] + u[1][k] * v[1][k] + u[2][k] * v[2][k]; }
};

}  // namespace

template <class Real>
void compute_norms(int hidden, const Real* mixed, Real* __restrict norms) {
    const MixedRows<Real> rows(mixed, hidden);
    for (int k = 0; k < hidden; ++k)
        norms[k] = std::sqrt(rows.v[0][k] * rows.v[0][k] + rows.v[1][k] * rows.v[1][k] + rows.v[2][k] * rows.v[2][k] + static_cast<Real>(kNormFloor));
}

template <class Real>
void apply_gates(int hidden, const Real* mixed, const Real* __restrict gates, Real* __restrict scalars, Real* __restrict vectors) {
    const MixedRows<Real> rows(mixed, hidden);
    for (int k = 0; k < hidden; ++k) scalars[k] += gates[k] + gates[hidden + k] * rows.dot(k);
    if (!vectors) return;
    for (int c = 0; c < 3; ++c)
        for (int k = 0; k < hidden; ++k) vectors[c * hidden + k] += gates[2 * hidden + k] * rows.u[c][k];
}

template <class Real>
void reverse_gates(int hidden, const Real* mixed, const Real* __restrict scalars_gradient, const Real* __restrict vectors_gradient, Real* __restrict gates_gradient) {
    const MixedRows<Real> rows(mixed, hidden);
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
    const MixedRows<Real> rows(in.mixed, hidden);
    const Real *__restrict norms = in.norms, *__restrict a_sv = in.gates + hidden, *__restrict a_vv = in.gates + 2 * hidden;
    const Real *__restrict by_scalars = in.scalars_gradient, *__restrict by_norms = in.norms_gradient;
    for (int c = 0; c < 3; ++c) {
        const Real *__restrict u = rows.u[c], *__restrict v = rows.v[c];
        Real *__restrict by_u = in.mixed_gradient + 2 * c * hidden, *__restrict by_v = by_u + hidden;
        for (int k = 0; k < hidden; ++k) {
            const Real by_dot = by_scalars[k] * a_sv[k];
            by_u[k] = by_dot * v[k];
            by_v[k] = by_dot * u[k] + by_norms[k] * v[k] / norms[k];
        }
        if (!in.vectors_gradient) continue;
        const Real* __restrict by_vectors = in.vectors_gradient + c * hidden;
        for (int k = 0; k < hidden; ++k) by_u[k] += by_vectors[k] * a_vv[k];
    }
}

template void compute_norms(int, const float*, float*);
template void compute_norms(int, const double*, double*);
template void apply_gates(int, const float*, const float*, float*, float*);
template void apply_gates(int, const double*, const double*, double*, double*);
template void reverse_gates(int, const float*, const float*, const float*, float*);
template void reverse_gates(int, const double*, const double*, const double*, double*);
template void reverse_mixed(int, const MixedGradient<float>&);
template void reverse_mixed(int, const MixedGradient<double>&);

}  // namespace mlff::painn::cpu
