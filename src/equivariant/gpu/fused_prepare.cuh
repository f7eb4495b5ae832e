// SPDX-License-Identifier: MIT
// What precedes fused messages: functions and harmonics of edges, and densities. Included by fused_messages.cu only.
#pragma once

#include "equivariant/gpu/fused_edges.cuh"

namespace mlff::equivariant::gpu {
namespace {

// Computes functions and scaled harmonics of the edges of a chunk, zero beyond the last edge. Also clears view.taken.
// Launch: WarpsPerTile warps per tile.
template <bool kWithSlopes, int WarpsPerTile>
__global__ void __launch_bounds__(kBlockThreads) prepare_kernel(FusedMessages::View view, EdgesView<float> edges) {
    mlff::gpu::await_predecessor();
    if (blockIdx.x == 0)
        for (int i = static_cast<int>(threadIdx.x); i < 2 * view.lot_count; i += kBlockThreads) view.taken[i] = 0;
    const int64_t warp = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32, tile = warp / WarpsPerTile;
    const int part = static_cast<int>(warp % WarpsPerTile);
    const int64_t edge_count = min(view.end, edges.first[edges.atom_count]);
    const int64_t first_edge = view.begin + tile * kEdgesPerTile;
    if (first_edge >= edge_count) return;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int64_t edge = first_edge + lane / 4;
    const bool is_edge = edge < edge_count;
    SplinePoint<float> point;
    if (is_edge) {
        const RadialTableView<float>* table = view.tables;
        if (view.receiver_stride + view.sender_stride > 0)
            table = &view.table(edges.elements[atom_ending_after(edges.first, edges.atom_count, edge)],
                                edges.elements[edges.sender[edge]]);
        point = table->at(edges.distance[edge]);
    }
    constexpr int kPlanes = RadialProduct::kFunctionPlanes;
    for (int step = part; step < kSteps; step += WarpsPerTile) {
        const int column = step * kFunctionsPerStep + lane % 4 * 4;
        float values[4] = {}, slopes[4] = {};
        if (is_edge && column < view.function_count) {
            load(point.row + column, values);
#pragma unroll
            for (int t = 0; t < kSplineOrder; ++t) {
                float differences[4];
                load(point.share_row(t) + column, differences);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    values[i] += point.value[t] * differences[i];
                    if (kWithSlopes) slopes[i] += point.slope[t] * differences[i];
                }
            }
        }
        for (int i = 0; i < 4; ++i) {
            values[i] *= view.function_scale;
            slopes[i] *= view.function_scale;
        }
        const int64_t at = ((tile * kSteps + step) * kPlanes) * 32 + lane;
        RadialProduct::store_functions(values, view.functions + at);
        if (kWithSlopes) RadialProduct::store_functions(slopes, view.function_slopes + at);
    }
    if (part > 0) return;
    const int first = lane / kEdgesPerTile * 4;
    const int64_t edge_of_harmonics = first_edge + lane % kEdgesPerTile;
    const float* harmonics = edges.harmonics + edge_of_harmonics * edges.harmonic_count + first;
    float scaled[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        scaled[i] = edge_of_harmonics < edge_count && first + i < edges.harmonic_count
                        ? view.harmonic_scale * __ldg(harmonics + i)
                        : float(0);
        if (view.has_distance_power && scaled[i] != 0)
            scaled[i] *= distance_power(static_cast<float>(edges.distance[edge_of_harmonics]), degree_of(first + i));
    }
    store(scaled, view.harmonics + tile * kHarmonicsOfTile + 4 * lane);
}

// Launch: one warp per atom.
__global__ void __launch_bounds__(kBlockThreads)
    sum_densities(FusedMessages::View view, EdgesView<float> edges, float* densities) {
    mlff::gpu::await_predecessor();
    const WarpOfAtom at;
    if (at.atom >= edges.atom_count) return;
    float sum = 0;
    for (int64_t edge = edges.first[at.atom] + at.lane; edge < edges.first[at.atom + 1]; edge += 32) {
        const auto& table = view.table(edges.elements[at.atom], edges.elements[edges.sender[edge]]);
        sum += value_at(table.at(edges.distance[edge]), view.density_column);
    }
    sum = sum_over_warp(sum);
    if (at.lane == 0) densities[at.atom] = sum;
}

}  // namespace
}  // namespace mlff::equivariant::gpu
