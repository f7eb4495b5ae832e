// SPDX-License-Identifier: MIT
#include "equivariant/cpu/edge_state.h"

#include <algorithm>

#include "equivariant/edge_harmonics.h"

namespace mlff::equivariant {
namespace {

// Writes exact functions as a table that has one node for each edge, with value and slope, so that the kernels need not
// know the difference.
template <class Real>
void find_exact_points(const LayerInput<Real>& layer, const EdgeState& state, BatchElements elements,
                       const int64_t* atoms, Role role, EdgeBatch<Real>& batch) {
    const ConvolutionPlan<Real>& plan = layer.plan;
    const auto count = static_cast<size_t>(batch.count), width = static_cast<size_t>(plan.columns.count);
    batch.places.resize(count);
    for (size_t e = 0; e < count; ++e)
        batch.places[e] = {state.edges->distance[batch.edge[e]], role == Role::receiver ? elements.other : elements.own,
                           role == Role::receiver ? elements.own : elements.other,
                           state.edges->distance[batch.edge[e]] >= plan.functions.onset()};
    plan.functions.start(batch.pass, batch.places);
    if (layer.down.first) {
        const int feature_count = plan.messages.edge_width;
        for (size_t e = 0; e < count; ++e) {
            const Real *own = layer.down.of(atoms[batch.member[e]]),
                       *other = layer.down.of(state.edges->sender[batch.edge[e]]);
            double* input = plan.functions.feature_input(batch.pass, static_cast<int>(e));
            std::copy_n(role == Role::receiver ? other : own, feature_count, input);
            std::copy_n(role == Role::receiver ? own : other, feature_count, input + feature_count);
        }
    }
    for (Buffer<double>* buffer : {&batch.exact_values, &batch.exact_slopes}) buffer->resize_discard(count * width);
    plan.functions.compute(layer.exact_kernels, batch.pass, batch.count, batch.exact_values.data(),
                           batch.exact_slopes.data());

    const size_t node_count = count + 1;  // kernels also read the next node, and multiply it by zero
    batch.table.resize_discard(node_count * kSplineRows * width);
    std::fill(batch.table.begin(), batch.table.end(), Real(0));
    constexpr int kSlopeShare = 1;
    Real* block = batch.table.data();
    size_t column = 0;
    for (const int block_width : plan.columns.widths) {
        const auto columns = static_cast<size_t>(block_width);
        for (size_t e = 0; e < count; ++e) {
            Real *values = block + e * kSplineRows * columns, *slopes = values + spline_row(kSlopeShare) * columns;
            for (size_t k = 0; k < columns; ++k) {
                values[k] = static_cast<Real>(batch.exact_values[e * width + column + k]);
                slopes[k] = static_cast<Real>(batch.exact_slopes[e * width + column + k]);
            }
        }
        block += node_count * kSplineRows * columns;
        column += columns;
    }
    SplinePoints<Real>& points = batch.points;
    points.table = batch.table.data();
    points.row_count = static_cast<int>(node_count) * kSplineRows;
    for (int e = 0; e < kEdgesPerBatch; ++e) points.interval[e] = e;
    for (int t = 0; t < kSplineOrder; ++t) {
        std::fill_n(points.value[t], kEdgesPerBatch, Real(0));
        std::fill_n(points.slope[t], kEdgesPerBatch, t == kSlopeShare ? Real(1) : Real(0));
    }
}

}  // namespace

template <class Real>
void find_points(const LayerInput<Real>& layer, const EdgeState& state, BatchElements elements, const int64_t* atoms,
                 Role role, EdgeBatch<Real>& batch) {
    bool use_table = layer.plan.uses_tables();
    for (size_t e = 0; e < static_cast<size_t>(batch.count); ++e) {
        batch.distance[e] = state.edges->distance[batch.edge[e]];
        use_table &= batch.distance[e] > layer.plan.lowest_distance;
    }
    if (!use_table) return find_exact_points(layer, state, elements, atoms, role, batch);
    const RadialTable<Real>& table = role == Role::receiver ? layer.plan.table(elements.own, elements.other)
                                                            : layer.plan.table(elements.other, elements.own);
    std::fill(batch.distance.begin() + batch.count, batch.distance.end(), table.view().low);
    batch.points.table = table.view().coefficients;
    batch.points.row_count = table.view().row_count;
    layer.kernels.find_points(batch.distance.data(), table.grid(), batch.points);
    for (int32_t& interval : batch.points.interval) interval += interval >= table.view().first_above_break ? 1 : 0;
}

// MACE takes the harmonics of the vector from sender to receiver. The vector of our edges is the opposite.
template <class Real>
void compute_harmonics(const LayerInput<Real>& layer, const EdgeState& state, Role role, EdgeBatch<Real>& batch) {
    const int max_degree = layer.plan.model.max_degree;
    const double sign = role == Role::receiver ? -1 : 1;
    for (size_t e = 0; e < kEdgesPerBatch; ++e) {
        const bool is_edge = e < static_cast<size_t>(batch.count);
        if (!is_edge) batch.distance[e] = 1;
        const double scale = is_edge ? sign / batch.distance[e] : 0;
        const double* vector = state.edges->vector + 3 * batch.edge[is_edge ? e : 0];
        for (size_t i = 0; i < 3; ++i) batch.direction[i * kEdgesPerBatch + e] = scale * vector[i];
    }
    batch.harmonics.resize_discard(static_cast<size_t>(harmonic_count(max_degree)) * kEdgesPerBatch);
    if (max_degree <= edge_harmonics::kWrittenOutDegree)
        return layer.kernels.compute_harmonics(max_degree, batch.direction.data(), batch.harmonics.data());
    std::array<Real, edge_harmonics::kMost> values;
    for (size_t e = 0; e < kEdgesPerBatch; ++e) {
        compute_edge_harmonics(max_degree, batch.direction_of(e), values.data());
        for (size_t h = 0; h < static_cast<size_t>(harmonic_count(max_degree)); ++h)
            batch.harmonics[h * kEdgesPerBatch + e] = values[h];
    }
}

template <class Real>
void start_gradients(EdgeBatch<Real>& batch) {
    batch.harmonics_gradient.resize_discard(batch.harmonics.size());
    std::fill(batch.harmonics_gradient.begin(), batch.harmonics_gradient.end(), Real(0));
    batch.slopes.fill(0);
}

template <class Real>
void add_vector_gradients(const LayerInput<Real>& layer, Role role, EdgeBatch<Real>& batch, EdgeState& state) {
    const int max_degree = layer.plan.model.max_degree;
    alignas(64) std::array<double, 3 * kEdgesPerBatch> by_vector;
    if (max_degree <= edge_harmonics::kWrittenOutDegree) {
        layer.kernels.reverse_harmonics(max_degree, batch.direction.data(), batch.distance.data(),
                                        batch.harmonics_gradient.data(), by_vector.data());
    } else {
        std::array<Real, edge_harmonics::kMost> gradient;
        for (size_t e = 0; e < static_cast<size_t>(batch.count); ++e) {
            for (size_t h = 0; h < static_cast<size_t>(harmonic_count(max_degree)); ++h)
                gradient[h] = batch.harmonics_gradient[h * kEdgesPerBatch + e];
            const Vec3 turn =
                reverse_edge_harmonics(max_degree, batch.direction_of(e), batch.distance[e], gradient.data());
            for (size_t i = 0; i < 3; ++i) by_vector[i * kEdgesPerBatch + e] = turn[i];
        }
    }
    const double sign = role == Role::receiver ? -1 : 1;
    for (size_t e = 0; e < static_cast<size_t>(batch.count); ++e)
        for (size_t i = 0; i < 3; ++i)
            state.vector_gradient[3 * static_cast<size_t>(batch.edge[e]) + i] +=
                sign * (by_vector[i * kEdgesPerBatch + e] +
                        static_cast<double>(batch.slopes[e]) * batch.direction[i * kEdgesPerBatch + e]);
}

#define MLFF_INSTANTIATE(Real)                                                                                      \
    template void find_points<Real>(const LayerInput<Real>&, const EdgeState&, BatchElements, const int64_t*, Role, \
                                    EdgeBatch<Real>&);                                                              \
    template void compute_harmonics<Real>(const LayerInput<Real>&, const EdgeState&, Role, EdgeBatch<Real>&);       \
    template void start_gradients<Real>(EdgeBatch<Real>&);                                                          \
    template void add_vector_gradients<Real>(const LayerInput<Real>&, Role, EdgeBatch<Real>&, EdgeState&);
MLFF_INSTANTIATE(float)
MLFF_INSTANTIATE(double)
#undef MLFF_INSTANTIATE

}  // namespace mlff::equivariant
