// SPDX-License-Identifier: MIT
#include "equivariant/cpu/messages.h"

#include <algorithm>

namespace mlff::equivariant {
namespace {

// Calls visit() for each batch of edges of a group, with batch.edge, batch.member, batch.points and batch.harmonics
// set.
template <class Real, class Visit>
void for_each_batch(const LayerInput<Real>& layer, const EdgeState& state, const EdgeGroup& group, Role role,
                    EdgeBatch<Real>& batch, const Visit& visit) {
    for (auto next = group.edges.begin(); next != group.edges.end();) {
        const int other = state.sender_element(next->edge);
        for (batch.count = 0;
             batch.count < kEdgesPerBatch && next != group.edges.end() && state.sender_element(next->edge) == other;
             ++batch.count, ++next) {
            batch.edge[static_cast<size_t>(batch.count)] = next->edge;
            batch.member[static_cast<size_t>(batch.count)] = next->member;
        }
        find_points(layer, state, {group.element, other}, group.atoms, role, batch);
        compute_harmonics(layer, state, role, batch);
        visit();
    }
}

// The edges of a batch for one path. Uses scratch.features.
template <class Real>
MessageEdges<Real> edges_of(const LayerInput<Real>& layer, const PathPlan<Real>& path, MessageScratch<Real>& scratch) {
    std::fill_n(scratch.shares.data(), path.share_count() * kEdgesPerBatch, Real(0));
    layer.kernels.add_scaled_rows(path.to_shares.data(), static_cast<int>(path.to_shares.size()),
                                  scratch.batch.harmonics.data(), scratch.shares.data());
    return {scratch.batch.count,   &scratch.batch.points, path.column,         scratch.features.data(),
            scratch.shares.data(), path.in_components,    path.out_components, path.stride};
}

// The reverse of one path. Uses scratch.features, scratch.sums_gradient and, if wanted, scratch.features_gradient.
template <class Real>
void reverse_path(const LayerInput<Real>& layer, const PathPlan<Real>& path, MessageScratch<Real>& scratch,
                  bool wants_features_gradient, bool wants_radial_gradient) {
    MessageGradients<Real> gradients;
    gradients.sums = scratch.sums_gradient.data();
    gradients.features = wants_features_gradient ? scratch.features_gradient.data() : nullptr;
    gradients.radial = wants_radial_gradient ? scratch.radial_gradient.data() + path.column : nullptr;
    gradients.radial_stride = layer.plan.columns.count;
    gradients.shares = scratch.shares_gradient.data();
    gradients.slopes = scratch.batch.slopes.data();
    gradients.work = scratch.work.data();
    layer.kernels.reverse_messages(edges_of(layer, path, scratch), gradients);
}

// From the gradients of the radial weights of a batch to those of the features that the networks take of one end.
template <class Real>
void add_feature_gradients(const LayerInput<Real>& layer, Role role, MessageScratch<Real>& scratch,
                           Real* down_gradient) {
    const int width = layer.plan.messages.edge_width, size = layer.plan.down->out_size();
    const auto count = static_cast<size_t>(scratch.batch.count) * static_cast<size_t>(layer.plan.columns.count);
    scratch.radial_gradient_exact.resize_discard(count);
    std::copy_n(scratch.radial_gradient.data(), count, scratch.radial_gradient_exact.data());
    int stride = 0;
    const double* gradient = layer.plan.functions.reverse_features(
        layer.exact_kernels, scratch.batch.pass, scratch.batch.count, scratch.radial_gradient_exact.data(), &stride);
    for (int e = 0; e < scratch.batch.count; ++e) {
        Real* to = down_gradient + scratch.batch.member[static_cast<size_t>(e)] * size;
        for (int i = 0; i < width; ++i)
            to[i] += static_cast<Real>(gradient[e * stride + (role == Role::receiver ? width : 0) + i]);
    }
}

}  // namespace

template <class Real>
void MessageScratch<Real>::reserve(const ConvolutionPlan<Real>& plan) {
    for (Buffer<Real>* buffer : {&shares, &shares_gradient})
        buffer->resize_discard(static_cast<size_t>(kEdgesPerBatch * plan.most_shares));
    work.resize_discard(message_work_size(plan.most_shares, plan.widest_path));
    scalar_sums.resize_discard(static_cast<size_t>(kMostMembers * plan.widest_path));
    if (plan.down) radial_gradient.resize_discard(static_cast<size_t>(kEdgesPerBatch * plan.columns.count));
}

template <class Real>
void sum_messages(const LayerInput<Real>& layer, const EdgeState& state, const EdgeGroup& group, int member_count,
                  MessageScratch<Real>& scratch, Real* sums, Real* densities) {
    const ConvolutionPlan<Real>& plan = layer.plan;
    const EdgeBatch<Real>& batch = scratch.batch;
    std::fill_n(sums, member_count * plan.sums_layout.size, Real(0));
    std::fill_n(densities, member_count, Real(0));
    for_each_batch(layer, state, group, Role::receiver, scratch.batch, [&] {
        if (plan.columns.density >= 0)
            for (int e = 0; e < batch.count; ++e)
                densities[batch.member[static_cast<size_t>(e)]] +=
                    value_at(batch.points, e, plan.columns.density, kRowPadding, 0);
        for (const PathPlan<Real>& path : plan.paths) {
            const bool is_scalar = path.out_components == 1;
            if (is_scalar) std::fill_n(scratch.scalar_sums.data(), member_count * path.stride, Real(0));
            for (size_t e = 0; e < static_cast<size_t>(batch.count); ++e) {
                scratch.features[e] = layer.senders.of(state.edges->sender[batch.edge[e]]) + path.in_offset;
                scratch.sums[e] = is_scalar ? scratch.scalar_sums.data() + batch.member[e] * path.stride
                                            : sums + batch.member[e] * plan.sums_layout.size + path.out_offset;
            }
            layer.kernels.sum_messages(edges_of(layer, path, scratch), scratch.sums.data());
            for (int member = 0; is_scalar && member < member_count; ++member) {
                const Real* from = scratch.scalar_sums.data() + member * path.stride;
                Real* to = sums + member * plan.sums_layout.size + path.out_offset;
                for (int k = 0; k < path.stride; ++k) to[k] += from[k];
            }
        }
    });
}

template <class Real>
void reverse_sent_messages(const LayerInput<Real>& layer, const LayerGradients<Real>& gradients, const EdgeGroup& group,
                           MessageScratch<Real>& scratch, EdgeState& state, Real* senders_gradient,
                           Real* down_gradient) {
    const ConvolutionPlan<Real>& plan = layer.plan;
    const EdgeBatch<Real>& batch = scratch.batch;
    for_each_batch(layer, state, group, Role::sender, scratch.batch, [&] {
        const auto count = static_cast<size_t>(batch.count);
        start_gradients(scratch.batch);
        if (down_gradient) std::fill_n(scratch.radial_gradient.data(), batch.count * plan.columns.count, Real(0));
        for (const PathPlan<Real>& path : plan.paths) {
            for (size_t e = 0; e < count; ++e) {
                scratch.features[e] = layer.senders.of(group.atoms[batch.member[e]]) + path.in_offset;
                scratch.sums_gradient[e] = gradients.sums +
                                           int64_t{state.edges->sender[batch.edge[e]]} * plan.sums_layout.size +
                                           path.out_offset;
                if (senders_gradient)
                    scratch.features_gradient[e] =
                        senders_gradient + batch.member[e] * plan.sender_layout.size + path.in_offset;
            }
            reverse_path(layer, path, scratch, senders_gradient != nullptr, down_gradient != nullptr);
            layer.kernels.add_scaled_rows(path.to_harmonics.data(), static_cast<int>(path.to_harmonics.size()),
                                          scratch.shares_gradient.data(), scratch.batch.harmonics_gradient.data());
        }
        if (plan.columns.density >= 0)
            for (size_t e = 0; e < count; ++e)
                scratch.batch.slopes[e] +=
                    gradients.density[state.edges->sender[batch.edge[e]]] *
                    slope_at(batch.points, static_cast<int>(e), plan.columns.density, kRowPadding, 0);
        add_vector_gradients(layer, Role::sender, scratch.batch, state);
        if (down_gradient) add_feature_gradients(layer, Role::sender, scratch, down_gradient);
    });
}

template <class Real>
void reverse_received_features(const LayerInput<Real>& layer, const LayerGradients<Real>& gradients,
                               const EdgeGroup& group, MessageScratch<Real>& scratch, const EdgeState& state,
                               Real* down_gradient) {
    const ConvolutionPlan<Real>& plan = layer.plan;
    const EdgeBatch<Real>& batch = scratch.batch;
    for_each_batch(layer, state, group, Role::receiver, scratch.batch, [&] {
        std::fill_n(scratch.radial_gradient.data(), batch.count * plan.columns.count, Real(0));
        start_gradients(scratch.batch);
        for (const PathPlan<Real>& path : plan.paths) {
            for (size_t e = 0; e < static_cast<size_t>(batch.count); ++e) {
                scratch.features[e] = layer.senders.of(state.edges->sender[batch.edge[e]]) + path.in_offset;
                scratch.sums_gradient[e] =
                    gradients.sums + group.atoms[batch.member[e]] * plan.sums_layout.size + path.out_offset;
            }
            reverse_path<Real>(layer, path, scratch, false, true);
        }
        add_feature_gradients(layer, Role::receiver, scratch, down_gradient);
    });
}

#define MLFF_INSTANTIATE(Real)                                                                                        \
    template struct MessageScratch<Real>;                                                                             \
    template void sum_messages<Real>(const LayerInput<Real>&, const EdgeState&, const EdgeGroup&, int,                \
                                     MessageScratch<Real>&, Real*, Real*);                                            \
    template void reverse_sent_messages<Real>(const LayerInput<Real>&, const LayerGradients<Real>&, const EdgeGroup&, \
                                              MessageScratch<Real>&, EdgeState&, Real*, Real*);                       \
    template void reverse_received_features<Real>(const LayerInput<Real>&, const LayerGradients<Real>&,               \
                                                  const EdgeGroup&, MessageScratch<Real>&, const EdgeState&, Real*);
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::equivariant
