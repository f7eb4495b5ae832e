// SPDX-License-Identifier: MIT
#include "mace/cpu/moments.h"

#include <algorithm>

namespace mlff::mace::cpu {
namespace {

template <class Real>
void start(const LayerPlan<Real>& plan, const EdgeState<Real>& state, TileAtoms tile, MomentScratch<Real>& scratch) {
    const auto width = static_cast<size_t>(plan.moments->stride()), rows = static_cast<size_t>(padded(plan.moments->row_count()));
    for (Buffer<Real>* buffer : {&scratch.functions, &scratch.slopes, &scratch.pulled}) buffer->resize_discard(kEdgesPerBatch * width);
    for (Buffer<Real>* buffer : {&scratch.shares, &scratch.shares_gradient}) buffer->resize_discard(kEdgesPerBatch * rows);
    scratch.moments.resize_discard(static_cast<size_t>(tile.count * plan.moments->layout().size));
    for (Buffer<Real>* buffer : {&scratch.matrix, &scratch.transposed}) buffer->resize_discard(width * rows);
    std::fill(scratch.transposed.begin(), scratch.transposed.end(), Real(0));
    scratch.next.resize(static_cast<size_t>(tile.count));
    for (int i = 0; i < tile.count; ++i) scratch.next[static_cast<size_t>(i)] = state.edges->first[tile.atoms[i]];
}

template <class Real>
bool has_edge_from(const EdgeState<Real>& state, int64_t atom, int64_t next, int sender_element) {
    return next < state.edges->first[atom + 1] && state.sender_element(state.by_element[static_cast<size_t>(next)]) == sender_element;
}

template <class Real>
bool any_edge_from(const EdgeState<Real>& state, TileAtoms tile, const MomentScratch<Real>& scratch, int sender_element) {
    for (int i = 0; i < tile.count; ++i)
        if (has_edge_from(state, tile.atoms[i], scratch.next[static_cast<size_t>(i)], sender_element)) return true;
    return false;
}

// Visits the next edges of the atom in batches, as long as they come from the element: functions, slopes if wanted, and
// shares, [edge][padded row_count], are set.
template <class Real, class Visit>
void for_each_batch(const LayerInput<Real>& layer, const EdgeState<Real>& state, int64_t atom, int64_t* next, int sender_element, bool with_slopes,
                    MomentScratch<Real>& scratch, const Visit& visit) {
    const MomentMaps<Real>& moments = *layer.plan.moments;
    const int row_stride = padded(moments.row_count());
    EdgeBatch<Real>& batch = scratch.batch;
    for (;;) {
        for (batch.count = 0; batch.count < kEdgesPerBatch && has_edge_from(state, atom, *next, sender_element); ++batch.count, ++*next)
            batch.edge[static_cast<size_t>(batch.count)] = state.by_element[static_cast<size_t>(*next)];
        if (batch.count == 0) return;
        find_points(layer, state, atom, Role::receiver, batch);
        layer.kernels.interpolate(batch.point.data(), moments.stride(), batch.count, scratch.functions.data(), with_slopes ? scratch.slopes.data() : nullptr);
        for (int e = 0; e < batch.count; ++e)
            for (size_t p = 0; p < layer.plan.paths.size(); ++p)
                layer.plan.paths[p].fill_shares(state.harmonics_of(batch.edge[static_cast<size_t>(e)]), Real(1),
                                                scratch.shares.data() + e * row_stride + moments.layout().blocks[p].offset / moments.stride());
        visit();
    }
}

// out[e] = in[e] matrix, for the edges of the batch
template <class Real>
void multiply_edges(const LayerInput<Real>& layer, MomentScratch<Real>& scratch, const Real* in, int depth, int in_stride, const Real* matrix, int width, Real* out) {
    for (int e = 0; e < scratch.batch.count; ++e) {
        scratch.from[static_cast<size_t>(e)] = in + e * in_stride;
        scratch.to[static_cast<size_t>(e)] = out + e * width;
    }
    layer.kernels.multiply_rows(scratch.from.data(), scratch.to.data(), scratch.batch.count, matrix, depth, width, false);
}

}  // namespace

template <class Real>
void compute_moment_messages(const LayerInput<Real>& layer, const EdgeState<Real>& state, const std::vector<int>& elements_present, TileAtoms tile,
                             MomentScratch<Real>& scratch, Real* messages, Real* densities) {
    const LayerPlan<Real>& plan = layer.plan;
    const MomentMaps<Real>& moments = *plan.moments;
    const int size = moments.layout().size, row_stride = padded(moments.row_count());
    start(plan, state, tile, scratch);
    std::fill_n(messages, tile.count * plan.linear_layout.size, Real(0));
    std::fill_n(densities, tile.count, Real(0));
    for (int sender_element : elements_present) {
        if (!any_edge_from(state, tile, scratch, sender_element)) continue;
        std::fill_n(scratch.moments.data(), tile.count * size, Real(0));
        for (int i = 0; i < tile.count; ++i)
            for_each_batch(layer, state, tile.atoms[i], &scratch.next[static_cast<size_t>(i)], sender_element, false, scratch, [&] {
                for (size_t p = 0; p < plan.paths.size(); ++p) {
                    const RowBlock& block = moments.layout().blocks[p];
                    layer.kernels.sum_products(scratch.shares.data() + block.offset / moments.stride(), row_stride, scratch.functions.data(), scratch.batch.count,
                                               block.components, moments.stride(), scratch.moments.data() + i * size + block.offset);
                }
                if (plan.columns.density >= 0)
                    for (int e = 0; e < scratch.batch.count; ++e) densities[i] += value_at(scratch.batch.point[static_cast<size_t>(e)], plan.columns.density);
            });
        moments.of(sender_element).apply(layer.kernels, 0, {scratch.moments.data(), size}, {messages, plan.linear_layout.size}, tile.count, true);
    }
}

template <class Real>
void reverse_moment_messages(const LayerInput<Real>& layer, const std::vector<int>& elements_present, TileAtoms tile, const Real* messages_gradient,
                             const Real* densities_gradient, MomentScratch<Real>& scratch, EdgeState<Real>& state) {
    const LayerPlan<Real>& plan = layer.plan;
    const MomentMaps<Real>& moments = *plan.moments;
    const int size = moments.layout().size, width = moments.stride(), row_count = moments.row_count(), row_stride = padded(row_count);
    start(plan, state, tile, scratch);
    for (int sender_element : elements_present) {
        if (!any_edge_from(state, tile, scratch, sender_element)) continue;
        moments.of(sender_element).apply_transposed(layer.kernels, 0, {messages_gradient, plan.linear_layout.size}, {scratch.moments.data(), size}, tile.count, false);
        for (int i = 0; i < tile.count; ++i) {
            const Real* gradient = scratch.moments.data() + i * size;  // [row][width]
            for (size_t row = 0; row < static_cast<size_t>(row_count); ++row)
                for (size_t k = 0; k < static_cast<size_t>(width); ++k, ++gradient) {
                    scratch.matrix[matrix_index(row, k, static_cast<size_t>(row_count))] = *gradient;
                    scratch.transposed[matrix_index(k, row, static_cast<size_t>(width))] = *gradient;
                }
            for_each_batch(layer, state, tile.atoms[i], &scratch.next[static_cast<size_t>(i)], sender_element, true, scratch, [&] {
                multiply_edges(layer, scratch, scratch.shares.data(), row_count, row_stride, scratch.matrix.data(), width, scratch.pulled.data());
                multiply_edges(layer, scratch, scratch.functions.data(), width, width, scratch.transposed.data(), row_stride, scratch.shares_gradient.data());
                std::array<Real, kEdgesPerBatch> slopes;
                layer.kernels.dot_rows(scratch.slopes.data(), scratch.pulled.data(), width, scratch.batch.count, slopes.data());
                for (int e = 0; e < scratch.batch.count; ++e) {
                    const int64_t edge = scratch.batch.edge[static_cast<size_t>(e)];
                    Real slope = slopes[static_cast<size_t>(e)];
                    for (size_t p = 0; p < plan.paths.size(); ++p)
                        plan.paths[p].reverse_shares(scratch.shares_gradient.data() + e * row_stride + moments.layout().blocks[p].offset / width, Real(1),
                                                     state.harmonics_gradient_of(edge));
                    if (plan.columns.density >= 0) slope += densities_gradient[i] * slope_at(scratch.batch.point[static_cast<size_t>(e)], plan.columns.density);
                    state.distance_gradient[static_cast<size_t>(edge)] += static_cast<double>(slope);
                }
            });
        }
    }
}

#define MLFF_INSTANTIATE(Real)                                                                                                                              \
    template void compute_moment_messages<Real>(const LayerInput<Real>&, const EdgeState<Real>&, const std::vector<int>&, TileAtoms, MomentScratch<Real>&, \
                                                Real*, Real*);                                                                                              \
    template void reverse_moment_messages<Real>(const LayerInput<Real>&, const std::vector<int>&, TileAtoms, const Real*, const Real*, MomentScratch<Real>&, \
                                                EdgeState<Real>&);
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::mace::cpu
