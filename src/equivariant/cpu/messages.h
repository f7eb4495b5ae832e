// SPDX-License-Identifier: MIT
// Sums of messages along the edges of a group of atoms, and the reverse. Single messages are never stored.
#pragma once

#include "equivariant/cpu/edge_state.h"

namespace mlff::equivariant {

inline constexpr int kMostMembers = 4;  // atoms in a group: their sums of one path stay in the first-level cache

// Memory of one thread.
template <class Real>
struct MessageScratch {
    EdgeBatch<Real> batch;
    std::array<const Real*, kEdgesPerBatch> features, sums_gradient;
    std::array<Real*, kEdgesPerBatch> sums, features_gradient;
    Buffer<Real> shares, shares_gradient;  // [share][kEdgesPerBatch]
    Buffer<Real> scalar_sums;              // [member][stride]: sums over the edges of a batch
    Buffer<Real> radial_gradient;          // [edge][columns.count]
    Buffer<double> radial_gradient_exact;
    Buffer<Real> work;

    void reserve(const ConvolutionPlan<Real>& plan);
};

// sums[member][path][c][k] = sum over edges and a of R[k] shares[a][c] features[sender][a][k]; also densities[member].
template <class Real>
void sum_messages(const LayerInput<Real>& layer, const EdgeState& state, const EdgeGroup& group, int member_count,
                  MessageScratch<Real>& scratch, Real* sums, Real* densities);

// Gradients that the reverse of a layer's messages starts from.
template <class Real>
struct LayerGradients {
    const Real* sums = nullptr;     // [atom][sums_layout.size]
    const Real* density = nullptr;  // [atom]
};

// Reverses the messages that atoms send. These go along the reverses of the atoms' own edges, which have the same
// length and opposite vectors. Adds to state.vector_gradient of the own edges, and to senders_gradient and
// down_gradient, [member][features] (nullptr: not wanted).
template <class Real>
void reverse_sent_messages(const LayerInput<Real>& layer, const LayerGradients<Real>& gradients, const EdgeGroup& group,
                           MessageScratch<Real>& scratch, EdgeState& state, Real* senders_gradient,
                           Real* down_gradient);

// If the radial networks take features: adds what the messages that atoms receive contribute to their own
// down_gradient, [member][features].
template <class Real>
void reverse_received_features(const LayerInput<Real>& layer, const LayerGradients<Real>& gradients,
                               const EdgeGroup& group, MessageScratch<Real>& scratch, const EdgeState& state,
                               Real* down_gradient);

}  // namespace mlff::equivariant
