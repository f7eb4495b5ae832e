// SPDX-License-Identifier: MIT
#include "mace/cpu/edge_state.h"

#include <algorithm>

namespace mlff::mace::cpu {
namespace {

// Exact functions look like a table that has one interval for each edge: the value, and one difference, the slope.
template <class Real>
void find_exact_points(const LayerInput<Real>& layer, const EdgeState<Real>& state, int64_t atom, Role role, EdgeBatch<Real>& batch) {
    const LayerPlan<Real>& plan = layer.plan;
    const auto count = static_cast<size_t>(batch.count), width = static_cast<size_t>(plan.columns.count);
    for (size_t e = 0; e < count; ++e) {
        const int own = state.element(atom), other = state.sender_element(batch.edge[e]);
        batch.place[e] = {state.edges->distance[batch.edge[e]], role == Role::receiver ? other : own, role == Role::receiver ? own : other};
    }
    plan.functions.start(batch.pass, {batch.place.data(), count});
    if (layer.down.first) {
        const int feature_count = plan.layer.interaction.edge_width;
        for (size_t e = 0; e < count; ++e) {
            const Real *own = layer.down.of(atom), *other = layer.down.of(state.edges->sender[batch.edge[e]]);
            double* input = plan.functions.feature_input(batch.pass, static_cast<int>(e));
            std::copy_n(role == Role::receiver ? other : own, feature_count, input);
            std::copy_n(role == Role::receiver ? own : other, feature_count, input + feature_count);
        }
    }
    for (Buffer<double>* buffer : {&batch.values, &batch.slopes}) buffer->resize_discard(count * width);
    for (Buffer<Real>* buffer : {&batch.value_rows, &batch.slope_rows}) buffer->resize_discard(count * width);
    plan.functions.compute(choose_kernels<double>(), batch.pass, batch.count, batch.values.data(), batch.slopes.data());
    for (size_t i = 0; i < count * width; ++i) {
        batch.value_rows[i] = static_cast<Real>(batch.values[i]);
        batch.slope_rows[i] = static_cast<Real>(batch.slopes[i]);
    }
    for (size_t e = 0; e < count; ++e) {
        SplinePoint<Real>& point = batch.point[e];
        point = {};
        point.center = batch.value_rows.data() + e * width;
        point.differences = batch.slope_rows.data() + e * width;
        point.slope[0] = 1;
    }
}

}  // namespace

template <class Real>
void find_points(const LayerInput<Real>& layer, const EdgeState<Real>& state, int64_t atom, Role role, EdgeBatch<Real>& batch) {
    bool use_tables = layer.plan.uses_tables();
    for (size_t e = 0; e < static_cast<size_t>(batch.count); ++e) use_tables &= state.edges->distance[batch.edge[e]] > layer.plan.lowest_distance;
    if (!use_tables) return find_exact_points(layer, state, atom, role, batch);
    const int own = state.element(atom);
    for (size_t e = 0; e < static_cast<size_t>(batch.count); ++e) {
        const int other = state.sender_element(batch.edge[e]);
        const RadialTable<Real>& table = role == Role::receiver ? layer.plan.table(own, other) : layer.plan.table(other, own);
        batch.point[e] = table.at(state.edges->distance[batch.edge[e]]);
    }
}

template void find_points<float>(const LayerInput<float>&, const EdgeState<float>&, int64_t, Role, EdgeBatch<float>&);
template void find_points<double>(const LayerInput<double>&, const EdgeState<double>&, int64_t, Role, EdgeBatch<double>&);

}  // namespace mlff::mace::cpu
