// SPDX-License-Identifier: MIT
// Messages along the edges of a group of atoms, added up without ever being stored, and the reverse.
#pragma once

#include "mace/cpu/edge_state.h"
#include "mace/cpu/plan_names.h"

namespace mlff::mace::cpu {

inline constexpr int kMostMembers = 4;  // atoms of a group: the sums of a path of that many stay in the first cache

// Memory of one worker.
template <class Real>
struct MessageScratch {
    EdgeBatch<Real> batch;
    std::array<const Real*, kEdgesPerBatch> features, sums_gradient;
    std::array<Real*, kEdgesPerBatch> sums, features_gradient;
    Buffer<Real> shares, shares_gradient;  // [share][kEdgesPerBatch]
    Buffer<Real> scalar_sums;              // [member][stride]: of the edges of a batch
    Buffer<Real> radial_gradient;          // [edge][columns.count]
    Buffer<double> radial_gradient_exact;
    Buffer<Real> work;

    void reserve(const LayerPlan<Real>& plan);
};

// sums[member][path][c][k] = sum over edges of R[k] shares[a][c] features[sender][a][k]; densities[member].
template <class Real>
void sum_messages(const LayerInput<Real>& layer, const EdgeState<Real>& state, const EdgeGroup& group, int member_count,
                  MessageScratch<Real>& scratch, Real* sums, Real* densities);

// Gradients of a layer, by atom.
template <class Real>
struct LayerGradients {
    const Real* sums = nullptr;     // [atom][sums_layout.size]
    const Real* density = nullptr;  // [atom]
};

// The messages that atoms send are those of their edges reversed: same length, harmonics of the other sign. Adds to the
// gradients of the edges as functions of the atoms' own vectors, and to senders_gradient and down_gradient,
// [member][features] (nullptr: not wanted).
template <class Real>
void reverse_sent_messages(const LayerInput<Real>& layer, const LayerGradients<Real>& gradients, const EdgeGroup& group,
                           MessageScratch<Real>& scratch, EdgeState<Real>& state, Real* senders_gradient,
                           Real* down_gradient);

// Where the radial networks see features: what the messages that atoms receive add to their own down_gradient,
// [member][features].
template <class Real>
void reverse_received_features(const LayerInput<Real>& layer, const LayerGradients<Real>& gradients,
                               const EdgeGroup& group, MessageScratch<Real>& scratch, const EdgeState<Real>& state,
                               Real* down_gradient);

}  // namespace mlff::mace::cpu
