// SPDX-License-Identifier: MIT
// Fused messages in reverse.
#include "equivariant/gpu/fused_edges.cuh"
#include "equivariant/gpu/fused_kernels.h"
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

// How many of its two edges of a tile a lane has in registers at once.
constexpr int edges_at_once(int components) { return components <= kFewComponents ? 2 : 1; }

// What a lane adds up over the paths of a lot, for its edges and four channels.
template <int Components>
struct TileGradients {
    static constexpr int kEdges = edges_at_once(Components);
    float features[kEdges][Components][4] = {}, harmonics[kEdges][kMostHarmonics] = {}, slope[kEdges] = {};
};

// One path for one tile: both edges of each lane, or the one with this number. `path_in_lot` counts within the lot.
template <int Components, int Rows>
__device__ __forceinline__ void reverse_path(const FusedMessages::View& view, int path, int path_in_lot, int stride,
                                             int tile, int number, const float* gradient,
                                             const float (&features)[edges_at_once(Components)][Components][4],
                                             TileGradients<Components>& gradients) {
    const int lane = static_cast<int>(threadIdx.x % 32), q = lane % 4;
    const int64_t at = int64_t{tile} * kSteps * RadialProduct::kFunctionPlanes * 32 + lane;
    const uint4* const functions[2] = {view.functions + at, view.function_slopes + at};
    float both[2][4][2];
    multiply_functions(view, path_in_lot, functions, both);
    constexpr int kEdges = edges_at_once(Components);
    if constexpr (kEdges == 1) {
#pragma unroll
        for (int i = 0; i < 8; ++i) both[i / 4][i % 4][0] = number == 0 ? both[i / 4][i % 4][0] : both[i / 4][i % 4][1];
    }
    const float(&radial)[4][2] = both[0], (&radial_slope)[4][2] = both[1];
    float by_sums[Rows][4];
#pragma unroll
    for (int r = 0; r < Rows; ++r) load(gradient + r * stride, by_sums[r]);
    visit_couplings<Components, Rows>(uniform(view.paths[path].degree), [&]<class Couplings>(Couplings) MLFF_INLINED {
        for_each_index<kEdges>([&]<int E>(Constant<E>) MLFF_INLINED {
            float harmonics[Couplings::kHarmonics], by_radial[4] = {};
            load_harmonics<Couplings::kDegree>(view.harmonics + tile * kHarmonicsOfTile, 2 * q + number + E, harmonics);
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

// What does not change along the tiles of an item.
struct ReverseItem {
    int slot, in_offset, stride, first_path, path_count, path_in_lot, first_channel, channel;
    bool is_channel;

    __device__ ReverseItem(const FusedMessages::View& view, const FusedMessages::Lot& lot, int group_in_lot,
                           const Item& item) {
        const FusedMessages::Group& of = view.groups[lot.first_group + group_in_lot];
        slot = uniform(lot.first_slot + group_in_lot);
        in_offset = uniform(of.in_offset);
        stride = uniform(of.stride);
        first_path = uniform(of.first_path);
        path_count = uniform(of.path_count);
        path_in_lot = uniform(of.first_path - lot.first_path);
        first_channel = uniform(lot.first_channel);
        is_channel = item.channel < stride;
        channel = is_channel ? item.channel : 0;
    }
};

// Edges `number` and, if lanes have both at once, `number` + 1 of each lane, for one tile.
template <int Components>
__device__ __forceinline__ void reverse_tile(const FusedMessages::View& view, const int32_t* sender,
                                             const RowsView<const float>& senders, const ReverseItem& item,
                                             const OwnEdges& own, int tile, int number, const float* gradient) {
    constexpr int kEdges = edges_at_once(Components);
    const int lane = static_cast<int>(threadIdx.x % 32), edge = tile * kEdgesPerTile + 2 * (lane % 4) + number;
    float features[kEdges][Components][4];
    TileGradients<Components> gradients;
    load_features(sender, senders, edge, own, item.in_offset + item.channel, item.stride, features);
#pragma unroll 1
    for (int p = 0; p < item.path_count; ++p) {
        const int path = item.first_path + p;
        const float* rows = gradient + view.paths[path].out_offset;
        const auto reverse = [&]<int Rows>(Constant<Rows>) MLFF_INLINED {
            reverse_path<Components, Rows>(view, path, item.path_in_lot + p, item.stride, tile, number, rows, features,
                                           gradients);
        };
        switch (uniform(view.paths[path].out_components)) {
            case 1: reverse(Constant<1>()); break;
            case 3: reverse(Constant<3>()); break;
            case 5: reverse(Constant<5>()); break;
            default: reverse(Constant<7>()); break;
        }
    }
#pragma unroll
    for (int e = 0; e < kEdges; ++e) {
        sum_over_channels(gradients.harmonics[e]);
#pragma unroll
        for (int distance = 4; distance < 32; distance *= 2)
            gradients.slope[e] += __shfl_xor_sync(kAllLanes, gradients.slope[e], distance);
        if (!own.has(edge + e)) continue;
        const int64_t local = edge + e;
        float* partials = view.partials + (local * view.slot_count + item.slot) * FusedMessages::kPartialStride;
        constexpr int kKept = kMostHarmonics / 8;
#pragma unroll
        for (int i = 0; i < kKept; ++i)
            partials[lane / 4 * kKept + i] = view.harmonic_scale * gradients.harmonics[e][i];
        if (lane < 4) partials[kMostHarmonics] = gradients.slope[e];
        if (!item.is_channel || !view.feature_gradients) continue;
        float* to = view.feature_gradients + local * view.sender_size + item.in_offset + item.channel;
#pragma unroll
        for (int a = 0; a < Components; ++a) store(gradients.features[e][a], to + a * item.stride);
    }
}

template <int Components>
__device__ __forceinline__ void reverse_item(const FusedMessages::View& view, const EdgesView<float>& edges,
                                             const RowsView<const float>& senders, const ReverseItem& item,
                                             int64_t atom, const OwnEdges& own, const float* sums_gradient) {
    const int32_t* sender = edges.sender + view.begin;
    const float* gradient = sums_gradient + atom * view.sums_size + item.channel;
#pragma unroll 1
    for (int tile = own.first_tile(); tile < own.tile_end(); ++tile) {
        if (tile + 1 < own.tile_end())
            prefetch_tile<Components>(view, sender, senders, tile + 1, own, item.in_offset + item.first_channel,
                                      item.stride, true);
        if constexpr (edges_at_once(Components) == 2) {
            reverse_tile<Components>(view, sender, senders, item, own, tile, 0, gradient);
        } else {
#pragma unroll 1
            for (int number = 0; number < 2; ++number)
                reverse_tile<Components>(view, sender, senders, item, own, tile, number, gradient);
        }
    }
}

// For features of up to `Most` components. Launch: FusedMessages::launch_for. An item is a part of an atom's tiles:
// gradients of edges do not depend on other edges.
template <int Most>
__global__ void __launch_bounds__(32 * kWarpsOfItems, 1)
    reverse_kernel(FusedMessages::View view, EdgesView<float> edges, RowsView<const float> senders,
                   const float* sums_gradient) {
    const Work work = start_work<true>(view, edges);
    for_each_item<true>(view, edges, work, [&](const Item& of_warp) MLFF_INLINED {
        const FusedMessages::Lot& lot = view.lots[of_warp.lot];
        // Groups with more components first: they take longer.
        const int group_in_lot = lot.group_count - 1 - of_warp.index / view.tile_parts;
        const ReverseItem item(view, lot, group_in_lot, of_warp);
        OwnEdges own(view, edges, of_warp.atom);
        if (view.tile_parts > 1) own = own.part(of_warp.index % view.tile_parts, view.tile_parts);
        const auto reverse = [&]<int Components>(Constant<Components>) MLFF_INLINED {
            if constexpr (Components <= Most)
                reverse_item<Components>(view, edges, senders, item, of_warp.atom, own, sums_gradient);
        };
        switch (uniform(view.groups[lot.first_group + group_in_lot].in_components)) {
            case 1: reverse(Constant<1>()); break;
            case 3: reverse(Constant<3>()); break;
            case 5: reverse(Constant<5>()); break;
            default: reverse(Constant<7>()); break;
        }
    });
}

}  // namespace

ReverseKernel reverse_kernel_for(int most_components) {
    return most_components <= kFewComponents ? reverse_kernel<kFewComponents> : reverse_kernel<kMostComponents>;
}

}  // namespace mlff::equivariant::gpu
