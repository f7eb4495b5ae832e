// SPDX-License-Identifier: MIT
// Sums of fused messages, forward.
#include <utility>

#include "equivariant/gpu/fused_edges.cuh"
#include "equivariant/gpu/fused_kernels.h"

namespace mlff::equivariant::gpu {
namespace {

// A pass sums several paths at once, one for each slot. `Rows` are the components of the sums of each slot.
template <int... Rows>
struct Slots {
    static constexpr int kCount = sizeof...(Rows), kRows[] = {Rows...}, kTotal = (Rows + ...);
    static constexpr int first(int slot) {
        int sum = 0;
        for (int s = 0; s < slot; ++s) sum += kRows[s];
        return sum;
    }
};
using ScalarSlots = Slots<1, 3, 5, 7>;  // for senders with one component
using LowSlots = Slots<1, 3, 3, 5>;     // for other senders, as is HighSlots; both have twelve rows
using HighSlots = Slots<5, 7>;

template <int Components, int Tiles, class Slot>
__device__ __forceinline__ void sum_pass(const FusedMessages::View& view, const EdgesView<float>& edges,
                                         const RowsView<const float>& senders, const Item& item, float* sums) {
    const FusedMessages::Lot& lot = view.lots[item.lot];
    const FusedMessages::Pass& pass = view.passes[lot.first_pass + item.index];
    const FusedMessages::Group& group = view.groups[uniform(pass.group)];
    const int lane = static_cast<int>(threadIdx.x % 32), q = lane % 4;
    const int64_t first = edges.first[item.atom];
    const OwnEdges own(view, edges, item.atom);
    const int first_path = uniform(lot.first_path), stride = uniform(group.stride),
              in_offset = uniform(group.in_offset), first_channel = uniform(lot.first_channel);
    const bool is_channel = item.channel < stride;
    const int channel = is_channel ? item.channel : 0;
    float sum[Slot::kTotal][4];
#pragma unroll
    for (int r = 0; r < Slot::kTotal; ++r)
#pragma unroll
        for (int c = 0; c < 4; ++c) sum[r][c] = 0;
#pragma unroll 1
    for (int tile = own.first_tile(); tile < own.tile_end(); tile += Tiles) {
        const int tiles_left = min(Tiles, own.tile_end() - tile);
#pragma unroll
        for (int t = Tiles; t < 2 * Tiles; ++t)
            if (tile + t < own.tile_end())
                prefetch_tile<Components>(view, edges.sender + view.begin, senders, tile + t, own,
                                          in_offset + first_channel, stride, false);
        const int edge = tile * kEdgesPerTile + 2 * q;  // the first of the two edges of this lane, in the chunk
        float features[Tiles][2][Components][4];
#pragma unroll
        for (int t = 0; t < Tiles; ++t)
            load_features(edges.sender + view.begin, senders, edge + t * kEdgesPerTile, own, in_offset + channel,
                          stride, features[t]);
        const uint4* functions[Tiles];
#pragma unroll
        for (int t = 0; t < Tiles; ++t)
            functions[t] = view.functions + int64_t{tile + t} * kSteps * RadialProduct::kFunctionPlanes * 32 + lane;
        const auto add_slot = [&]<int S>(std::integral_constant<int, S>) MLFF_INLINED {
            const int path = uniform(pass.paths[S]);
            if (path < 0) return;
            constexpr int kRows = Slot::kRows[S], kFirst = Slot::first(S);
            float radial[Tiles][4][2];
            multiply_functions(view, path - first_path, functions, radial);
            visit_couplings<Components, kRows>(
                uniform(view.paths[path].degree), [&]<class Couplings>(Couplings) MLFF_INLINED {
                    for_each_index<2 * Tiles>([&]<int I>(Constant<I>) MLFF_INLINED {
                        constexpr int t = I / 2, e = I % 2;
                        if (t >= tiles_left) return;
                        float harmonics[Couplings::kHarmonics];
                        load_harmonics<Couplings::kDegree>(view.harmonics + (tile + t) * kHarmonicsOfTile, 2 * q + e,
                                                           harmonics);
                        for_each_index<Components>([&]<int A>(Constant<A>) MLFF_INLINED {
                            float shares[kRows];
                            compute_shares<Couplings, A>(harmonics, shares);
#pragma unroll
                            for (int c = 0; c < 4; ++c) {
                                const float weighed = radial[t][c][e] * features[t][e][A][c];
#pragma unroll
                                for (int r = 0; r < kRows; ++r)
                                    if (has_share<Couplings>(A, r)) sum[kFirst + r][c] += shares[r] * weighed;
                            }
                        });
                    });
                });
        };
        [&]<int... S>(std::integer_sequence<int, S...>) MLFF_INLINED {
            (add_slot(std::integral_constant<int, S>{}), ...);
        }
        (std::make_integer_sequence<int, Slot::kCount>{});
    }
    const auto write_slot = [&]<int S>(std::integral_constant<int, S>) MLFF_INLINED {
        constexpr int kRows = Slot::kRows[S], kFirst = Slot::first(S);
        const int path = uniform(pass.paths[S]);
        float* to = path < 0 ? nullptr : sums + item.atom * view.sums_size + view.paths[path].out_offset + channel;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                sum[kFirst + r][c] += __shfl_xor_sync(kAllLanes, sum[kFirst + r][c], 1);
                sum[kFirst + r][c] += __shfl_xor_sync(kAllLanes, sum[kFirst + r][c], 2);
            }
            if (!to || !is_channel || (kFirst + r) % 4 != q) continue;
            if (first < view.begin) {  // the atom's edges began in an earlier chunk: add to its sums
#pragma unroll
                for (int c = 0; c < 4; ++c) sum[kFirst + r][c] += to[r * stride + c];
            }
            store(sum[kFirst + r], to + r * stride);
        }
    };
    [&]<int... S>(std::integer_sequence<int, S...>) MLFF_INLINED {
        (write_slot(std::integral_constant<int, S>{}), ...);
    }
    (std::make_integer_sequence<int, Slot::kCount>{});
}

// For features of up to `Most` components. Launch: FusedMessages::launch_for.
template <int Most>
__global__ void __launch_bounds__(32 * kWarpsOfItems, 1)
    sum_kernel(FusedMessages::View view, EdgesView<float> edges, RowsView<const float> senders, float* sums) {
    const Work work = start_work<false>(view, edges);
    for_each_item<false>(view, edges, work, [&](const Item& item) MLFF_INLINED {
        const FusedMessages::Lot& lot = view.lots[item.lot];
        const FusedMessages::Pass& pass = view.passes[lot.first_pass + item.index];
        const int kind = uniform(pass.kind);
        const auto sum = [&]<int Components>(Constant<Components>) MLFF_INLINED {
            if constexpr (Components <= Most) {
                constexpr int kTiles = Components <= 3 ? 2 : 1;
                if (kind == kLowPass)
                    sum_pass<Components, kTiles, LowSlots>(view, edges, senders, item, sums);
                else
                    sum_pass<Components, kTiles, HighSlots>(view, edges, senders, item, sums);
            }
        };
        switch (uniform(view.groups[pass.group].in_components)) {
            case 1: sum_pass<1, 2, ScalarSlots>(view, edges, senders, item, sums); break;
            case 3: sum(Constant<3>()); break;
            case 5: sum(Constant<5>()); break;
            default: sum(Constant<7>()); break;
        }
    });
}

}  // namespace

SumKernel sum_kernel_for(int most_components) {
    return most_components <= kFewComponents ? sum_kernel<kFewComponents> : sum_kernel<kMostComponents>;
}

}  // namespace mlff::equivariant::gpu
