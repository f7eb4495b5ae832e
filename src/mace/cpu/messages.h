// SPDX-License-Identifier: MIT
// Messages of one atom, summed over its edges without ever being stored, and the reverse.
#pragma once

#include "mace/cpu/edge_state.h"

namespace mlff::mace::cpu {

// Memory of one worker.
template <class Real>
struct MessageScratch {
    EdgeBatch<Real> batch;
    std::array<const Real*, kEdgesPerBatch> senders, sums_gradient;
    std::array<Real, kEdgesPerBatch> slopes;
    Buffer<Real> products, shares, shares_gradient, radial_gradient;  // [edge][...]
    Buffer<double> radial_gradient_exact;

    void reserve(const LayerPlan<Real>& plan);
};

// sums[path][c][k] = sum over edges of R[k] shares[a][c] features[sender][a][k]; returns the density.
template <class Real>
Real sum_messages(const LayerInput<Real>& layer, const EdgeState<Real>& state, int64_t atom, MessageScratch<Real>& scratch, Real* sums);

// Gradients of a layer, by atom.
template <class Real>
struct MessageGradients {
    const Real* sums = nullptr;     // [atom][sums_layout.size]
    const Real* density = nullptr;  // [atom]
};

// The messages that an atom sends are those of its edges reversed: same length, harmonics of the other sign. Adds to the gradients of
// the edges as functions of the atom's own vectors, and to senders_gradient and down_gradient, [features of the atom] (nullptr: not wanted).
template <class Real>
void reverse_sent_messages(const LayerInput<Real>& layer, const MessageGradients<Real>& gradients, int64_t atom, MessageScratch<Real>& scratch,
                           EdgeState<Real>& state, Real* senders_gradient, Real* down_gradient);

// Where the radial networks see features: what the messages that an atom receives add to its own down_gradient.
template <class Real>
void reverse_received_features(const LayerInput<Real>& layer, const MessageGradients<Real>& gradients, int64_t atom, MessageScratch<Real>& scratch,
                               const EdgeState<Real>& state, Real* down_gradient);

}  // namespace mlff::mace::cpu
