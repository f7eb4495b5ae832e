// SPDX-License-Identifier: MIT
// Fused messages in reverse. Included by fused_messages.cu only.
#pragma once

#include "equivariant/gpu/fused_edges.cuh"
#include "gpu/engine/instructions.h"

namespace mlff::equivariant::gpu {
namespace {

// Sums over the eight lanes with the same lane % 4. Each step halves the numbers that a lane keeps. In the end lane
// 4 g + q has numbers g Count / 8 ... (g + 1) Count / 8 - 1, at the beginning of its array.
template <int Half, int Count>
__device__ __forceinline__ void halve(float (&numbers)[Count], unsigned distance) {
    const unsigned upper = threadIdx.x & distance ? 0xffffffffu : 0u;
#pragma unroll
    for (int i = 0; i < Half; ++i) {
        const float mine = choose_by_mask(upper, numbers[i + Half], numbers[i]),
                    theirs = choose_by_mask(upper, numbers[i], numbers[i + Half]);
        numbers[i] = mine + __shfl_xor_sync(kAllLanes, theirs, distance);
    }
}
template <int Count>
__device__ __forceinline__ void sum_over_channels(float (&numbers)[Count]) {
    static_assert(Count % 8 == 0);
    halve<Count / 2>(numbers, 16);
    halve<Count / 4>(numbers, 8);
    halve<Count / 8>(numbers, 4);
}

// What a lane adds up over the paths of a group, for its two edges and four channels.
template <int Components>
struct TileGradients {
    float features[2][Components][4] = {}, harmonics[2][kMostHarmonics] = {}, slope[2] = {};
};

// One path for one tile.
template <int Components, int Rows>
__device__ __forceinline__ void reverse_path(const FusedMessages::View& view, int path, int stride, int tile,
                                             const float* gradient, const float (&features)[2][Components][4],
                                             TileGradients<Components>& gradients) {
    const int lane = static_cast<int>(threadIdx.x % 32), q = lane % 4;
    const int64_t at = int64_t{tile} * kSteps * RadialProduct::kFunctionPlanes * 32 + lane;
    const uint4* const functions[2] = {view.functions + at, view.function_slopes + at};
    float both[2][4][2];
    multiply_functions(view, path, functions, both);
    const float(&radial)[4][2] = both[0], (&radial_slope)[4][2] = both[1];
    float by_sums[Rows][4];
#pragma unroll
    for (int r = 0; r < Rows; ++r) load(gradient + r * stride, by_sums[r]);
    visit_couplings<Components, Rows>(uniform(view.paths[path].degree), [&]<class Couplings>(Couplings) MLFF_INLINED {
        for_each_index<2>([&]<int E>(Constant<E>) MLFF_INLINED {
            float harmonics[Couplings::kHarmonics], by_radial[4] = {};
            load_harmonics<Couplings::kDegree>(view.harmonics + tile * kHarmonicsOfTile, 2 * q + E, harmonics);
            for_each_index<Components>([&]<int A>(Constant<A>) MLFF_INLINED {
                float shares[Rows], weighed[4], by_shares[Rows];
                compute_shares<Couplings, A>(harmonics, shares);
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    float pulled = 0;
#pragma unroll
                    for (int r = 0; r < Rows; ++r)
                        if (has_share<Couplings>(A, r)) pulled += shares[r] * by_sums[r][c];
                    by_radial[c] += features[E][A][c] * pulled;
                    gradients.features[E][A][c] += radial[c][E] * pulled;
                    weighed[c] = radial[c][E] * features[E][A][c];
                }
#pragma unroll
                for (int r = 0; r < Rows; ++r)
                    if (has_share<Couplings>(A, r))
                        by_shares[r] = weighed[0] * by_sums[r][0] + weighed[1] * by_sums[r][1] +
                                       weighed[2] * by_sums[r][2] + weighed[3] * by_sums[r][3];
                for_each_term<Couplings, A>([&]<int Index>(Constant<Index>) MLFF_INLINED {
                    constexpr PathTerm term = Couplings::kTerms.of[Index];
                    gradients.harmonics[E][Couplings::kDegree * Couplings::kDegree + term.harmonic] +=
                        term.value * by_shares[term.out];
                });
            });
#pragma unroll
            for (int c = 0; c < 4; ++c) gradients.slope[E] += radial_slope[c][E] * by_radial[c];
        });
    });
}

template <int Components>
__device__ __forceinline__ void reverse_group(const FusedMessages::View& view, const EdgesView<float>& edges,
                                              const RowsView<const float>& senders, const Worker& worker,
                                              int group_index, int64_t atom, const OwnEdges& own,
                                              const float* sums_gradient) {
    const auto& group = view.groups[group_index];
    const int lane = static_cast<int>(threadIdx.x % 32), q = lane % 4;
    const int first_channel = worker.slice * kChannelsPerSlice;
    const bool is_channel = worker.channel < group.stride, is_slice = first_channel < group.stride;
    const int channel = is_channel ? worker.channel : 0;
    const float* gradient = sums_gradient + atom * view.sums_size + channel;
    const int32_t* sender = edges.sender + view.begin;
    const int first_path = uniform(group.first_path), path_end = first_path + uniform(group.path_count);
#pragma unroll 1
    for (int tile = own.first_tile(); tile < own.tile_end(); ++tile) {
        const int edge = tile * kEdgesPerTile + 2 * q;
        if (tile + 1 < own.tile_end())
            prefetch_tile<Components>(view, sender, senders, tile + 1, own,
                                      group.in_offset + (is_slice ? first_channel : 0), group.stride, true);
        float features[2][Components][4];
        TileGradients<Components> gradients;
        load_features(sender, senders, edge, own, group.in_offset + channel, group.stride, features);
#pragma unroll 1
        for (int path = first_path; path < path_end; ++path) {
            const float* rows = gradient + view.paths[path].out_offset;
            const auto reverse = [&]<int Rows>(Constant<Rows>) MLFF_INLINED {
                reverse_path<Components, Rows>(view, path, group.stride, tile, rows, features, gradients);
            };
            switch (uniform(view.paths[path].out_components)) {
                case 1: reverse(Constant<1>()); break;
                case 3: reverse(Constant<3>()); break;
                case 5: reverse(Constant<5>()); break;
                default: reverse(Constant<7>()); break;
            }
        }
        const int slot = worker.slice * view.group_count + group_index;
        const int64_t slots = int64_t{view.slice_count} * view.group_count;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            sum_over_channels(gradients.harmonics[e]);
#pragma unroll
            for (int distance = 4; distance < 32; distance *= 2)
                gradients.slope[e] += __shfl_xor_sync(kAllLanes, gradients.slope[e], distance);
            if (!own.has(edge + e)) continue;
            const int64_t local = edge + e;
            float* partials = view.partials + (local * slots + slot) * FusedMessages::kPartialStride;
            constexpr int kKept = kMostHarmonics / 8;
#pragma unroll
            for (int i = 0; i < kKept; ++i)
                partials[lane / 4 * kKept + i] = view.harmonic_scale * gradients.harmonics[e][i];
            if (lane < 4) partials[kMostHarmonics] = gradients.slope[e];
            if (!is_channel || !view.feature_gradients) continue;
            float* to = view.feature_gradients + local * view.sender_size + group.in_offset + channel;
#pragma unroll
            for (int a = 0; a < Components; ++a) store(gradients.features[e][a], to + a * group.stride);
        }
    }
}

// Launch: like sum_kernel. An item is a part of an atom's tiles: gradients of edges do not depend on other edges.
template <int Most>
__global__ void __launch_bounds__(32 * most_warps(Most), 1)
    reverse_kernel(FusedMessages::View view, EdgesView<float> edges, RowsView<const float> senders,
                   const float* sums_gradient) {
    const Worker worker = start_work(view, edges, view.group_count * view.tile_parts);
    worker.for_each_item([&](int item) MLFF_INLINED {
        const int64_t atom = worker.first_atom + item % worker.atom_count;
        // Groups with more components first: they take longer.
        const int of_atom = static_cast<int>(item / worker.atom_count),
                  group = view.group_count - 1 - of_atom / view.tile_parts,
                  components = uniform(view.groups[group].in_components);
        OwnEdges own(view, edges, atom);
        if (view.tile_parts > 1) own = own.part(of_atom % view.tile_parts, view.tile_parts);
        if (components == 1)
            reverse_group<1>(view, edges, senders, worker, group, atom, own, sums_gradient);
        else if (Most >= 3 && components == 3)
            reverse_group<3>(view, edges, senders, worker, group, atom, own, sums_gradient);
        else if constexpr (Most >= 5)
            reverse_group<5>(view, edges, senders, worker, group, atom, own, sums_gradient);
    });
}

// Adds up the partial gradients of edges in a fixed order. Launch: one thread for each edge of the chunk and each of
// its gradients.
__global__ void __launch_bounds__(kBlockThreads)
    finish_kernel(FusedMessages::View view, EdgesView<float> edges, const float* densities_gradient,
                  EdgeGradientsView<float> gradients, bool accumulate) {
    mlff::gpu::await_predecessor();
    const int64_t i = int64_t{blockIdx.x} * kBlockThreads + threadIdx.x;
    const int slots = view.slice_count * view.group_count, columns = edges.harmonic_count + 1;
    const int64_t edge = view.begin + i / columns;
    const int column = static_cast<int>(i % columns);
    if (edge >= min(view.end, edges.first[edges.atom_count])) return;
    const bool is_harmonic = column < edges.harmonic_count;
    const float* from = view.partials + (edge - view.begin) * slots * FusedMessages::kPartialStride +
                        (is_harmonic ? column : kMostHarmonics);
    float sum = 0;
    for (int slot = 0; slot < slots; ++slot) sum += from[slot * FusedMessages::kPartialStride];
    if (is_harmonic) {
        float* to = gradients.harmonics + edge * edges.harmonic_count + column;
        *to = accumulate ? *to + sum : sum;
        return;
    }
    auto slope = static_cast<double>(sum);
    if (view.density_column >= 0) {
        const int64_t atom = atom_ending_after(edges.first, edges.atom_count, edge);
        const auto& table = view.table(edges.elements[atom], edges.elements[edges.sender[edge]]);
        slope += static_cast<double>(densities_gradient[atom] *
                                     slope_at(table.at(edges.distance[edge]), view.density_column));
    }
    gradients.distance[edge] = accumulate ? gradients.distance[edge] + slope : slope;
}

// Adds to the gradient of an atom's features from the edges of the chunk along which the atom sends; edges from
// *known_end on have no gradients. The indices of these edges are gathered first, in order. Groups of kBlockThreads
// threads take them in turn. Launch: one block of Groups groups per atom.
template <int Groups>
__global__ void __launch_bounds__(kBlockThreads* Groups)
    gather_kernel(FusedMessages::View view, EdgesView<float> edges, const int64_t* known_end,
                  const int64_t* reverse_edge, float* senders_gradient, bool adds) {
    mlff::gpu::await_predecessor();
    constexpr int kThreads = kBlockThreads * Groups, kAllWarps = kThreads / 32;
    __shared__ int32_t found[kThreads];
    __shared__ int found_by_warp[kAllWarps];
    __shared__ float4 sums[Groups > 1 ? Groups - 1 : 1][kBlockThreads];
    const int64_t atom = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int group = thread / kBlockThreads, of_group = thread % kBlockThreads;
    const int64_t end = edges.first[atom + 1], chunk_end = min(view.end, *known_end);
    float* row = senders_gradient + atom * view.sender_size;
    if (!adds && group == 0)  // each thread clears what it adds to below
        for (int i = 4 * of_group; i < view.sender_size; i += 4 * kBlockThreads) store({0, 0, 0, 0}, row + i);
    for (int64_t begin = edges.first[atom]; begin < end; begin += kThreads) {
        const int64_t edge = begin + thread < end ? reverse_edge[begin + thread] : -1;
        const bool is_here = edge >= view.begin && edge < chunk_end;
        const unsigned here = __ballot_sync(kAllLanes, is_here);
        __syncthreads();
        if (lane == 0) found_by_warp[warp] = __popc(here);
        __syncthreads();
        int place = __popc(here & ((1u << lane) - 1)), count = 0;
        for (int w = 0; w < kAllWarps; ++w) {
            if (w < warp) place += found_by_warp[w];
            count += found_by_warp[w];
        }
        if (is_here) found[place] = static_cast<int32_t>(edge - view.begin);
        __syncthreads();
        if (count == 0) continue;
        for (int first = 0; first < view.sender_size; first += 4 * kBlockThreads) {
            const int i = first + 4 * of_group;
            const bool is_column = i < view.sender_size;
            float sum[4] = {};
            if (is_column)
#pragma unroll 4
                for (int f = group; f < count; f += Groups) {
                    float part[4];
                    load(view.feature_gradients + int64_t{found[f]} * view.sender_size + i, part);
#pragma unroll
                    for (int c = 0; c < 4; ++c) sum[c] += part[c];
                }
            if constexpr (Groups > 1) {
                if (group > 0) sums[group - 1][of_group] = make_float4(sum[0], sum[1], sum[2], sum[3]);
                __syncthreads();
                if (group == 0)
                    for (int g = 0; g < Groups - 1; ++g) {
                        const float4 other = sums[g][of_group];
                        sum[0] += other.x;
                        sum[1] += other.y;
                        sum[2] += other.z;
                        sum[3] += other.w;
                    }
                __syncthreads();
            }
            if (group > 0 || !is_column) continue;
#pragma unroll
            for (int c = 0; c < 4; ++c) row[i + c] += sum[c];
        }
    }
}

}  // namespace
}  // namespace mlff::equivariant::gpu
