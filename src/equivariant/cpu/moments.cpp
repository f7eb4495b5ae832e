// SPDX-License-Identifier: MIT
#include "equivariant/cpu/moments.h"

#include <algorithm>

namespace mlff::equivariant {
namespace {

template <class Real>
void start(const ConvolutionPlan<Real>& plan, const EdgeState& state, TileAtoms tile, MomentScratch<Real>& scratch) {
    const auto width = static_cast<size_t>(plan.moments->stride()),
               rows = static_cast<size_t>(padded(plan.moments->row_count()));
    for (Buffer<Real>* buffer : {&scratch.functions, &scratch.slopes}) buffer->resize_discard(kEdgesPerBatch * width);
    for (Buffer<Real>* buffer : {&scratch.shares, &scratch.products, &scratch.by_shares, &scratch.by_slopes})
        buffer->resize_discard(kEdgesPerBatch * rows);
    scratch.moments.resize_discard(static_cast<size_t>(tile.count) * rows * width);
    std::fill(scratch.moments.begin(), scratch.moments.end(), Real(0));  // padding rows stay zero
    scratch.gradient.resize_discard(width * rows);
    scratch.from.resize(std::max<size_t>(kEdgesPerBatch, rows));
    scratch.to.resize(std::max<size_t>(kEdgesPerBatch, rows));
    scratch.next.resize(static_cast<size_t>(tile.count));
    for (int i = 0; i < tile.count; ++i) scratch.next[static_cast<size_t>(i)] = state.edges->first[tile.atoms[i]];
}

bool has_edge_from(const EdgeState& state, int64_t atom, int64_t next, int sender_element) {
    return next < state.edges->first[atom + 1] &&
           state.sender_element(state.order[static_cast<size_t>(next)]) == sender_element;
}

template <class Real>
bool any_edge_from(const EdgeState& state, TileAtoms tile, const MomentScratch<Real>& scratch, int sender_element) {
    for (int i = 0; i < tile.count; ++i)
        if (has_edge_from(state, tile.atoms[i], scratch.next[static_cast<size_t>(i)], sender_element)) return true;
    return false;
}

// Calls visit() for each batch of the atom's next edges from atoms of `sender_element`, with the batch's points and
// scratch.shares set.
template <class Real, class Visit>
void for_each_batch(const LayerInput<Real>& layer, const EdgeState& state, int64_t atom, int64_t* next,
                    int sender_element, MomentScratch<Real>& scratch, const Visit& visit) {
    const MomentMaps<Real>& moments = *layer.plan.moments;
    EdgeBatch<Real>& batch = scratch.batch;
    for (;;) {
        for (batch.count = 0; batch.count < kEdgesPerBatch && has_edge_from(state, atom, *next, sender_element);
             ++batch.count, ++*next)
            batch.edge[static_cast<size_t>(batch.count)] = state.order[static_cast<size_t>(*next)];
        if (batch.count == 0) return;
        find_points(layer, state, {state.element(atom), sender_element}, nullptr, Role::receiver, batch);
        compute_harmonics(layer, state, Role::receiver, batch);
        std::fill(scratch.shares.begin(), scratch.shares.end(), Real(0));
        for (size_t p = 0; p < layer.plan.paths.size(); ++p) {
            const PathPlan<Real>& path = layer.plan.paths[p];
            layer.kernels.add_scaled_rows(path.to_shares.data(), static_cast<int>(path.to_shares.size()),
                                          batch.harmonics.data(),
                                          scratch.shares.data() + moments.first_row(p) * kEdgesPerBatch);
        }
        visit();
    }
}

// out[row][e] = in[e] times the gradient of the moments, for the edges of the batch
template <class Real>
void multiply_by_gradient(const LayerInput<Real>& layer, MomentScratch<Real>& scratch, const Real* in, Real* out) {
    const int width = layer.plan.moments->stride(), row_stride = padded(layer.plan.moments->row_count());
    for (int e = 0; e < scratch.batch.count; ++e) {
        scratch.from[static_cast<size_t>(e)] = in + e * width;
        scratch.to[static_cast<size_t>(e)] = scratch.products.data() + e * row_stride;
    }
    std::fill(scratch.products.begin() + scratch.batch.count * row_stride, scratch.products.end(), Real(0));
    layer.kernels.multiply_rows(scratch.from.data(), scratch.to.data(), scratch.batch.count, scratch.gradient.data(),
                                width, row_stride, false);
    layer.kernels.transpose(scratch.products.data(), row_stride, kEdgesPerBatch, row_stride, out, kEdgesPerBatch);
}

}  // namespace

template <class Real>
void compute_moment_messages(const LayerInput<Real>& layer, const EdgeState& state,
                             const std::vector<int>& elements_present, TileAtoms tile, MomentScratch<Real>& scratch,
                             Real* messages, Real* densities) {
    const ConvolutionPlan<Real>& plan = layer.plan;
    const MomentMaps<Real>& moments = *plan.moments;
    const int width = moments.stride(), size = padded(moments.row_count()) * width;
    start(plan, state, tile, scratch);
    std::fill_n(messages, tile.count * plan.linear_layout.size, Real(0));
    std::fill_n(densities, tile.count, Real(0));
    for (int sender_element : elements_present) {
        if (!any_edge_from(state, tile, scratch, sender_element)) continue;
        std::fill(scratch.moments.begin(), scratch.moments.end(), Real(0));
        for (int i = 0; i < tile.count; ++i) {
            for (int row = 0; row < moments.row_count(); ++row) {
                scratch.from[static_cast<size_t>(row)] = scratch.shares.data() + row * kEdgesPerBatch;
                scratch.to[static_cast<size_t>(row)] = scratch.moments.data() + i * size + row * width;
            }
            for_each_batch(
                layer, state, tile.atoms[i], &scratch.next[static_cast<size_t>(i)], sender_element, scratch, [&] {
                    const int count = scratch.batch.count;
                    layer.kernels.interpolate(
                        scratch.batch.points, count,
                        {scratch.functions.data(), nullptr, width, kRowPadding, ptrdiff_t{kRowPadding} * count});
                    layer.kernels.multiply_rows(scratch.from.data(), scratch.to.data(), moments.row_count(),
                                                scratch.functions.data(), count, width, true);
                    if (plan.columns.density >= 0)
                        for (int e = 0; e < count; ++e)
                            densities[i] += value_at(scratch.batch.points, e, plan.columns.density, kRowPadding, 0);
                });
        }
        moments.of(sender_element)
            .apply(layer.kernels, 0, {scratch.moments.data(), size}, {messages, plan.linear_layout.size}, tile.count,
                   true);
    }
}

// With g the gradient of the moments:
//   dE/dshare = sum over functions of f g,  dE/dr = sum over shares of share * (sum over functions of f' g)
template <class Real>
void reverse_moment_messages(const LayerInput<Real>& layer, const std::vector<int>& elements_present, TileAtoms tile,
                             const Real* messages_gradient, const Real* densities_gradient,
                             MomentScratch<Real>& scratch, EdgeState& state) {
    const ConvolutionPlan<Real>& plan = layer.plan;
    const MomentMaps<Real>& moments = *plan.moments;
    const int width = moments.stride(), row_count = moments.row_count(), row_stride = padded(row_count),
              size = row_stride * width;
    start(plan, state, tile, scratch);
    for (int sender_element : elements_present) {
        if (!any_edge_from(state, tile, scratch, sender_element)) continue;
        moments.of(sender_element)
            .apply_transposed(layer.kernels, 0, {messages_gradient, plan.linear_layout.size},
                              {scratch.moments.data(), size}, tile.count, false);
        for (int i = 0; i < tile.count; ++i) {
            // A matrix is stored in strips of kRowPadding columns.
            for (int row = 0; row < row_stride; row += kRowPadding)
                layer.kernels.transpose(scratch.moments.data() + i * size + row * width, width, kRowPadding, width,
                                        scratch.gradient.data() + row * width, kRowPadding);
            for_each_batch(
                layer, state, tile.atoms[i], &scratch.next[static_cast<size_t>(i)], sender_element, scratch, [&] {
                    EdgeBatch<Real>& batch = scratch.batch;
                    layer.kernels.interpolate(
                        batch.points, batch.count,
                        {scratch.functions.data(), scratch.slopes.data(), width, width, kRowPadding});
                    multiply_by_gradient(layer, scratch, scratch.functions.data(), scratch.by_shares.data());
                    multiply_by_gradient(layer, scratch, scratch.slopes.data(), scratch.by_slopes.data());
                    start_gradients(batch);
                    for (int row = 0; row < row_count; ++row) {
                        const Real *share = scratch.shares.data() + row * kEdgesPerBatch,
                                   *by_slope = scratch.by_slopes.data() + row * kEdgesPerBatch;
                        for (size_t e = 0; e < kEdgesPerBatch; ++e) batch.slopes[e] += share[e] * by_slope[e];
                    }
                    for (size_t p = 0; p < plan.paths.size(); ++p) {
                        const PathPlan<Real>& path = plan.paths[p];
                        layer.kernels.add_scaled_rows(path.to_harmonics.data(),
                                                      static_cast<int>(path.to_harmonics.size()),
                                                      scratch.by_shares.data() + moments.first_row(p) * kEdgesPerBatch,
                                                      batch.harmonics_gradient.data());
                    }
                    if (plan.columns.density >= 0)
                        for (int e = 0; e < batch.count; ++e)
                            batch.slopes[static_cast<size_t>(e)] +=
                                densities_gradient[i] * slope_at(batch.points, e, plan.columns.density, kRowPadding, 0);
                    add_vector_gradients(layer, Role::receiver, batch, state);
                });
        }
    }
}

#define MLFF_INSTANTIATE(Real)                                                                                      \
    template void compute_moment_messages<Real>(const LayerInput<Real>&, const EdgeState&, const std::vector<int>&, \
                                                TileAtoms, MomentScratch<Real>&, Real*, Real*);                     \
    template void reverse_moment_messages<Real>(const LayerInput<Real>&, const std::vector<int>&, TileAtoms,        \
                                                const Real*, const Real*, MomentScratch<Real>&, EdgeState&);
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::equivariant
