// SPDX-License-Identifier: MIT
#include "mace/cpu/messages.h"

#include <algorithm>

namespace mlff::mace::cpu {
namespace {

// Visits the edges of an atom in batches: batch.edge and batch.point are set, from which the visitor works.
template <class Real, class Visit>
void for_each_batch(const LayerInput<Real>& layer, const EdgeState<Real>& state, int64_t atom, Role role, EdgeBatch<Real>& batch, const Visit& visit) {
    const int64_t end = state.edges->first[atom + 1];
    for (int64_t begin = state.edges->first[atom]; begin < end; begin += kEdgesPerBatch) {
        batch.count = static_cast<int>(std::min<int64_t>(kEdgesPerBatch, end - begin));
        for (size_t e = 0; e < static_cast<size_t>(batch.count); ++e) batch.edge[e] = begin + static_cast<int64_t>(e);
        find_points(layer, state, atom, role, batch);
        visit();
    }
}

// One path of the edges of a batch in reverse, with scratch.senders and scratch.sums_gradient set.
template <class Real>
void reverse_path(const LayerInput<Real>& layer, const EdgeState<Real>& state, const PathPlan<Real>& path, Real sign, MessageScratch<Real>& scratch,
                  Real* features_gradient, bool wants_radial_gradient) {
    for (size_t e = 0; e < static_cast<size_t>(scratch.batch.count); ++e)
        path.fill_shares(state.harmonics_of(scratch.batch.edge[e]), sign, scratch.shares.data() + e * static_cast<size_t>(path.share_count()));
    ReverseEdges<Real> edges;
    edges.edge_count = scratch.batch.count;
    edges.points = scratch.batch.point.data();
    edges.column = path.column;
    edges.features = scratch.senders.data();
    edges.sums_gradient = scratch.sums_gradient.data();
    edges.features_gradient = features_gradient;
    edges.radial_gradient = wants_radial_gradient ? scratch.radial_gradient.data() + path.column : nullptr;
    edges.radial_stride = layer.plan.columns.count;
    edges.shares = scratch.shares.data();
    edges.shares_gradient = scratch.shares_gradient.data();
    edges.slopes = scratch.slopes.data();
    edges.component_count = path.in_components;
    edges.out_count = path.out_components;
    edges.stride = path.stride;
    layer.kernels.reverse_edges(edges);
}

// From the gradients of the radial weights of a batch to those of the features of one end.
template <class Real>
void add_feature_gradients(const LayerInput<Real>& layer, Role role, MessageScratch<Real>& scratch, Real* down_gradient) {
    const int width = layer.plan.layer.interaction.edge_width;
    const auto size = static_cast<size_t>(scratch.batch.count) * static_cast<size_t>(layer.plan.columns.count);
    scratch.radial_gradient_exact.resize_discard(size);
    std::copy_n(scratch.radial_gradient.data(), size, scratch.radial_gradient_exact.data());
    int stride = 0;
    const double* gradient = layer.plan.functions.reverse_features(choose_kernels<double>(), scratch.batch.pass, scratch.batch.count,
                                                                   scratch.radial_gradient_exact.data(), &stride);
    for (int e = 0; e < scratch.batch.count; ++e)
        for (int i = 0; i < width; ++i) down_gradient[i] += static_cast<Real>(gradient[e * stride + (role == Role::receiver ? width : 0) + i]);
}

}  // namespace

template <class Real>
void MessageScratch<Real>::reserve(const LayerPlan<Real>& plan) {
    int stride = kRowPadding;
    for (const auto& path : plan.paths) stride = std::max(stride, path.stride);
    products.resize_discard(static_cast<size_t>(kEdgesPerBatch * plan.most_components * stride));
    for (Buffer<Real>* buffer : {&shares, &shares_gradient}) buffer->resize_discard(static_cast<size_t>(kEdgesPerBatch * plan.most_shares));
    if (plan.down) radial_gradient.resize_discard(static_cast<size_t>(kEdgesPerBatch * plan.columns.count));
}

template <class Real>
Real sum_messages(const LayerInput<Real>& layer, const EdgeState<Real>& state, int64_t atom, MessageScratch<Real>& scratch, Real* sums) {
    const LayerPlan<Real>& plan = layer.plan;
    const EdgeBatch<Real>& batch = scratch.batch;
    std::fill_n(sums, plan.sums_layout.size, Real(0));
    Real density = 0;
    for_each_batch(layer, state, atom, Role::receiver, scratch.batch, [&] {
        const auto count = static_cast<size_t>(batch.count);
        if (plan.columns.density >= 0)
            for (size_t e = 0; e < count; ++e) density += value_at(batch.point[e], plan.columns.density);
        for (const PathPlan<Real>& path : plan.paths) {
            for (size_t e = 0; e < count; ++e) {
                path.fill_shares(state.harmonics_of(batch.edge[e]), Real(1), scratch.shares.data() + e * static_cast<size_t>(path.share_count()));
                scratch.senders[e] = layer.senders.of(state.edges->sender[batch.edge[e]]) + path.in_offset;
            }
            layer.kernels.weigh_features(batch.point.data(), path.column, scratch.senders.data(), path.in_components, path.stride, batch.count,
                                         scratch.products.data());
            layer.kernels.sum_products(scratch.shares.data(), path.out_components, scratch.products.data(), batch.count * path.in_components,
                                       path.out_components, path.stride, sums + path.out_offset);
        }
    });
    return density;
}

template <class Real>
void reverse_sent_messages(const LayerInput<Real>& layer, const MessageGradients<Real>& gradients, int64_t atom, MessageScratch<Real>& scratch,
                           EdgeState<Real>& state, Real* senders_gradient, Real* down_gradient) {
    const LayerPlan<Real>& plan = layer.plan;
    const EdgeBatch<Real>& batch = scratch.batch;
    for_each_batch(layer, state, atom, Role::sender, scratch.batch, [&] {
        const auto count = static_cast<size_t>(batch.count);
        scratch.slopes.fill(0);
        if (down_gradient) std::fill_n(scratch.radial_gradient.data(), batch.count * plan.columns.count, Real(0));
        for (const PathPlan<Real>& path : plan.paths) {
            for (size_t e = 0; e < count; ++e) {
                scratch.senders[e] = layer.senders.of(atom) + path.in_offset;
                scratch.sums_gradient[e] = gradients.sums + int64_t{state.edges->sender[batch.edge[e]]} * plan.sums_layout.size + path.out_offset;
            }
            reverse_path(layer, state, path, path.reversal, scratch, senders_gradient ? senders_gradient + path.in_offset : nullptr, down_gradient != nullptr);
            for (size_t e = 0; e < count; ++e)
                path.reverse_shares(scratch.shares_gradient.data() + e * static_cast<size_t>(path.share_count()), path.reversal, state.harmonics_gradient_of(batch.edge[e]));
        }
        for (size_t e = 0; e < count; ++e) {
            double slope = static_cast<double>(scratch.slopes[e]);
            if (plan.columns.density >= 0) slope += static_cast<double>(gradients.density[state.edges->sender[batch.edge[e]]] * slope_at(batch.point[e], plan.columns.density));
            state.distance_gradient[static_cast<size_t>(batch.edge[e])] += slope;
        }
        if (down_gradient) add_feature_gradients(layer, Role::sender, scratch, down_gradient);
    });
}

template <class Real>
void reverse_received_features(const LayerInput<Real>& layer, const MessageGradients<Real>& gradients, int64_t atom, MessageScratch<Real>& scratch,
                               const EdgeState<Real>& state, Real* down_gradient) {
    const LayerPlan<Real>& plan = layer.plan;
    const EdgeBatch<Real>& batch = scratch.batch;
    for_each_batch(layer, state, atom, Role::receiver, scratch.batch, [&] {
        std::fill_n(scratch.radial_gradient.data(), batch.count * plan.columns.count, Real(0));
        for (const PathPlan<Real>& path : plan.paths) {
            for (size_t e = 0; e < static_cast<size_t>(batch.count); ++e) {
                scratch.senders[e] = layer.senders.of(state.edges->sender[batch.edge[e]]) + path.in_offset;
                scratch.sums_gradient[e] = gradients.sums + atom * plan.sums_layout.size + path.out_offset;
            }
            reverse_path<Real>(layer, state, path, Real(1), scratch, nullptr, true);
        }
        add_feature_gradients(layer, Role::receiver, scratch, down_gradient);
    });
}

#define MLFF_INSTANTIATE(Real)                                                                                                          \
    template struct MessageScratch<Real>;                                                                                               \
    template Real sum_messages<Real>(const LayerInput<Real>&, const EdgeState<Real>&, int64_t, MessageScratch<Real>&, Real*);           \
    template void reverse_sent_messages<Real>(const LayerInput<Real>&, const MessageGradients<Real>&, int64_t, MessageScratch<Real>&,   \
                                              EdgeState<Real>&, Real*, Real*);                                                          \
    template void reverse_received_features<Real>(const LayerInput<Real>&, const MessageGradients<Real>&, int64_t, MessageScratch<Real>&, \
                                                  const EdgeState<Real>&, Real*);
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::mace::cpu
