// SPDX-License-Identifier: MIT
// Messages in double precision; tensor_messages.cu has those in single precision.
#include "painn/gpu/messages.h"

#include <algorithm>

#include "gpu/engine/four.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"
#include "painn/gpu/edge_gradient.h"
#include "painn/gpu/sizes.h"
#include "painn/gpu/widths.h"

namespace mlff::painn::gpu {
namespace {

using namespace mlff::gpu;

// How lanes divide the channels of an atom: each lane has PerLane adjacent channels, and all warps of an atom are in
// one block. If an atom has several warps, they synchronise with block barriers, so the block has no other atom.
template <class Real, int Width, int PerLane>
struct Shape {
    static constexpr int kWarpsPerAtom = Width / (32 * PerLane);
    static constexpr int kAtoms = kWarpsPerAtom == 1 ? 4 : 1;  // per block
    static constexpr int kThreads = 32 * kWarpsPerAtom * kAtoms;
    static_assert(kWarpsPerAtom * 32 * PerLane == Width);
};

// Adjacent channels, loaded or stored together.
template <class Real, int Count>
struct alignas(sizeof(Real) * Count) Numbers {
    Real of[Count];
};
template <int Count, class Real>
__device__ __forceinline__ Numbers<Real, Count> load(const Real* from) {
    return *reinterpret_cast<const Numbers<Real, Count>*>(from);
}
template <class Real, int Count>
__device__ __forceinline__ void store(Real* to, const Numbers<Real, Count>& numbers) {
    *reinterpret_cast<Numbers<Real, Count>*>(to) = numbers;
}

// Computes filter[edge][part][channel] of a few edges. Parts are s, v, u. Edges beyond the last repeat the last one.
template <class Real, int Width, int PerLane, int Edges>
__device__ __forceinline__ void evaluate_filter(const Real* functions, int function_count, int64_t begin, int64_t end,
                                                const Real* filter, Real (&result)[Edges][3][PerLane]) {
#pragma unroll
    for (int e = 0; e < Edges; ++e)
#pragma unroll
        for (int part = 0; part < 3; ++part)
#pragma unroll
            for (int c = 0; c < PerLane; ++c) result[e][part][c] = 0;
    const Real* of_edge[Edges];
#pragma unroll
    for (int e = 0; e < Edges; ++e) of_edge[e] = functions + min(begin + e, end - 1) * function_count;
    for (int n = 0; n < function_count; n += 4) {
        Four<Real> function[Edges];
#pragma unroll
        for (int e = 0; e < Edges; ++e) function[e] = load_four(of_edge[e] + n);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int part = 0; part < 3; ++part) {
                const auto weight = load<PerLane>(filter + ((n + i) * 3 + part) * Width);
#pragma unroll
                for (int e = 0; e < Edges; ++e)
#pragma unroll
                    for (int c = 0; c < PerLane; ++c) result[e][part][c] += function[e].of[i] * weight.of[c];
            }
    }
}

template <class Real, int Width, int PerLane>
__global__ void __launch_bounds__(Shape<Real, Width, PerLane>::kThreads)
    sum_kernel(const __grid_constant__ MessageStage<Real> stage) {
    mlff::gpu::await_predecessor();
    using S = Shape<Real, Width, PerLane>;
    constexpr int kEdges = 4;
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    const int64_t atom = blockIdx.x * int64_t{S::kAtoms} + warp / S::kWarpsPerAtom;
    if (atom >= stage.edges.atom_count) return;
    const int channel = (warp % S::kWarpsPerAtom * 32 + lane) * PerLane;
    const int64_t end = stage.edges.first[atom + 1];
    Real scalar[PerLane] = {}, vector[3][PerLane] = {};
    for (int64_t begin = stage.edges.first[atom]; begin < end; begin += kEdges) {
        Real filter[kEdges][3][PerLane];
        evaluate_filter<Real, Width, PerLane, kEdges>(stage.functions.value->of, 4 * stage.functions.group_count, begin,
                                                      end, stage.filter.weights + channel, filter);
#pragma unroll
        for (int e = 0; e < kEdges; ++e) {
            if (begin + e >= end) break;
            const int32_t sender = stage.edges.sender[begin + e];
            const Four<Real> direction = load_four(stage.functions.direction + 4 * (begin + e));
            const Real* sent = stage.sent + int64_t{sender} * (kSentRows * Width) + channel;
            const auto phi_s = load<PerLane>(sent), phi_u = load<PerLane>(sent + Width);
#pragma unroll
            for (int c = 0; c < PerLane; ++c) {
                scalar[c] += filter[e][0][c] * phi_s.of[c];
                const Real along = filter[e][2][c] * phi_u.of[c];
#pragma unroll
                for (int k = 0; k < 3; ++k) vector[k][c] += along * direction.of[k];
            }
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                const auto sent_vector = load<PerLane>(sent + (2 + k) * Width);
#pragma unroll
                for (int c = 0; c < PerLane; ++c) vector[k][c] += filter[e][1][c] * sent_vector.of[c];
            }
        }
    }
    Numbers<Real, PerLane> sum = load<PerLane>(stage.scalars + atom * Width + channel);
#pragma unroll
    for (int c = 0; c < PerLane; ++c) sum.of[c] += scalar[c];
    store(stage.new_scalars + atom * Width + channel, sum);
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        const int64_t at = (3 * atom + k) * Width + channel;
        Numbers<Real, PerLane> before = load<PerLane>(stage.vectors + at);
#pragma unroll
        for (int c = 0; c < PerLane; ++c) before.of[c] += vector[k][c];
        store(stage.new_vectors + at, before);
    }
}

// Sums each of `Count` numbers, a power of two, over the lanes. Lane l gets the sum of number l / (32 / Count).
template <int Count, class Real>
__device__ __forceinline__ Real sum_many_over_warp(Real (&numbers)[Count], int lane) {
#pragma unroll
    for (int have = Count, distance = 16; distance >= 1; distance /= 2) {
        if (have > 1) {
            have /= 2;
            const bool is_upper = (lane & distance) != 0;
#pragma unroll
            for (int i = 0; i < Count / 2; ++i) {
                if (i >= have) break;
                const Real kept = is_upper ? numbers[i + have] : numbers[i],
                           given = is_upper ? numbers[i] : numbers[i + have];
                numbers[i] = kept + __shfl_xor_sync(kAllLanes, given, distance);
            }
        } else {
            numbers[0] += __shfl_xor_sync(kAllLanes, numbers[0], distance);
        }
    }
    return numbers[0];
}

// For each edge, `by_distance` = dE/d(distance) and `turn` = dE/d(direction) are summed over channels, and then
// converted to dE/d(vector). Messages go along the reverse edge, so `turn` has the opposite sign.
template <class Real, int Width, int PerLane>
__global__ void __launch_bounds__(Shape<Real, Width, PerLane>::kThreads)
    reverse_kernel(const __grid_constant__ MessageReverse<Real> stage) {
    mlff::gpu::await_predecessor();
    using S = Shape<Real, Width, PerLane>;
    constexpr int kEdges = 2, kSums = 4 * kEdges, kLanesPerSum = 32 / kSums;
    __shared__ Real partial[2][S::kWarpsPerAtom][kSums];
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    const int64_t atom = blockIdx.x * int64_t{S::kAtoms} + warp / S::kWarpsPerAtom;
    if (atom >= stage.edges.atom_count) return;  // never in a block with barriers: it has exactly one atom
    const int slice = warp % S::kWarpsPerAtom, channel = (slice * 32 + lane) * PerLane;
    const int64_t end = stage.edges.first[atom + 1];

    Numbers<Real, PerLane> own[kSentRows];  // what this atom sent
#pragma unroll
    for (int row = 0; row < kSentRows; ++row)
        own[row] = load<PerLane>(stage.sent + (atom * kSentRows + row) * Width + channel);
    Real phi_s_gradient[PerLane] = {}, phi_u_gradient[PerLane] = {}, sent_gradient[3][PerLane] = {};

    int parity = 0;
    for (int64_t begin = stage.edges.first[atom]; begin < end; begin += kEdges, parity ^= 1) {
        Real filter[kEdges][3][PerLane], slope[kEdges][3][PerLane];
        evaluate_filter<Real, Width, PerLane, kEdges>(stage.functions.value->of, 4 * stage.functions.group_count, begin,
                                                      end, stage.filter.weights + channel, filter);
        evaluate_filter<Real, Width, PerLane, kEdges>(stage.functions.slope->of, 4 * stage.functions.group_count, begin,
                                                      end, stage.filter.weights + channel, slope);
        Real sums[kSums] = {};
#pragma unroll
        for (int e = 0; e < kEdges; ++e) {
            if (begin + e >= end) break;
            const int32_t neighbor = stage.edges.sender[begin + e];
            const Four<Real> direction = load_four(stage.functions.direction + 4 * (begin + e));
            const Real* from = stage.gradient + int64_t{neighbor} * (kGradientRows * Width) + channel;
            Numbers<Real, PerLane> gradient[kGradientRows];
#pragma unroll
            for (int row = 0; row < kGradientRows; ++row) gradient[row] = load<PerLane>(from + row * Width);
#pragma unroll
            for (int c = 0; c < PerLane; ++c) {
                // u . dE/dv, with the direction u of the edge that carries the message
                Real along = 0;
#pragma unroll
                for (int k = 0; k < 3; ++k) along -= direction.of[k] * gradient[1 + k].of[c];
                sums[4 * e] +=
                    own[0].of[c] * gradient[0].of[c] * slope[e][0][c] + own[1].of[c] * along * slope[e][2][c];
                const Real turn = own[1].of[c] * filter[e][2][c];
#pragma unroll
                for (int k = 0; k < 3; ++k) sums[4 * e + 1 + k] += turn * gradient[1 + k].of[c];
                Real product = 0;
#pragma unroll
                for (int k = 0; k < 3; ++k) {
                    product += own[2 + k].of[c] * gradient[1 + k].of[c];
                    sent_gradient[k][c] += filter[e][1][c] * gradient[1 + k].of[c];
                }
                sums[4 * e] += product * slope[e][1][c];
                phi_s_gradient[c] += filter[e][0][c] * gradient[0].of[c];
                phi_u_gradient[c] += filter[e][2][c] * along;
            }
        }
        Real total = sum_many_over_warp(sums, lane);
        if constexpr (S::kWarpsPerAtom > 1) {
            if (lane % kLanesPerSum == 0) partial[parity][slice][lane / kLanesPerSum] = total;
            // One barrier is enough: the next turn writes to the other half, which has been read before this barrier.
            __syncthreads();
            total = 0;
#pragma unroll
            for (int w = 0; w < S::kWarpsPerAtom; ++w) total += partial[parity][w][lane / kLanesPerSum];
        }
        // Lanes 3 e + k write component k of edge e.
        const int e = min(lane / 3, kEdges - 1), k = lane % 3;
        const Real by_distance = __shfl_sync(kAllLanes, total, 4 * e * kLanesPerSum);
        Real turn[3];
#pragma unroll
        for (int i = 0; i < 3; ++i) turn[i] = __shfl_sync(kAllLanes, total, (4 * e + 1 + i) * kLanesPerSum);
        if (slice == 0 && lane < 3 * kEdges && begin + e < end) {
            const Four<Real> direction = load_four(stage.functions.direction + 4 * (begin + e));
            const EdgeComponent<Real> own_component(direction, turn[0], turn[1], turn[2], k);
            const Real across = own_component.across * direction.of[3];
            stage.vector_gradient[3 * (begin + e) + k] +=
                static_cast<double>(by_distance * own_component.direction - across);
        }
    }
    const auto phi_v = load<PerLane>(stage.phi_v + atom * Width + channel);
    Numbers<Real, PerLane> phi_gradient[3] = {};
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        const int64_t at = (3 * atom + k) * Width + channel;
        const auto vector = load<PerLane>(stage.vectors + at);
        Numbers<Real, PerLane> gradient =
            load<PerLane>(stage.gradient + (atom * kGradientRows + 1 + k) * Width + channel);
#pragma unroll
        for (int c = 0; c < PerLane; ++c) {
            phi_gradient[1].of[c] += sent_gradient[k][c] * vector.of[c];
            gradient.of[c] += sent_gradient[k][c] * phi_v.of[c];
        }
        store(stage.vectors_gradient + at, gradient);
    }
#pragma unroll
    for (int c = 0; c < PerLane; ++c) {
        phi_gradient[0].of[c] = phi_s_gradient[c];
        phi_gradient[2].of[c] = phi_u_gradient[c];
    }
#pragma unroll
    for (int part = 0; part < 3; ++part)
        store(stage.phi_gradient + (3 * atom + part) * Width + channel, phi_gradient[part]);
}

// With few atoms, each has more warps. With many, a lane has more channels, which share what is computed for an edge.
template <class Real, int Width>
inline constexpr int kMostPerLane = std::min(16 / static_cast<int>(sizeof(Real)), Width / 32);

template <class Stage, class Real, int Width, int PerLane>
void launch_shape(const char* doing, void (*kernel)(Stage), const Stage& stage, cudaStream_t stream) {
    using S = Shape<Real, Width, PerLane>;
    launch(doing, kernel, (int64_t{stage.edges.atom_count} + S::kAtoms - 1) / S::kAtoms, S::kThreads, stream, stage);
}

template <class Real, int Width>
void sum_messages_of_width(const MessageStage<Real>& stage, cudaStream_t stream) {
    using Stage = MessageStage<Real>;
    constexpr int kMost = kMostPerLane<Real, Width>;
    if (stage.edges.atom_count <= few_atoms_for_messages())
        launch_shape<Stage, Real, Width, 1>("messages", sum_kernel<Real, Width, 1>, stage, stream);
    else
        launch_shape<Stage, Real, Width, kMost>("messages", sum_kernel<Real, Width, kMost>, stage, stream);
}
template <class Real, int Width>
void reverse_messages_of_width(const MessageReverse<Real>& stage, cudaStream_t stream) {
    using Stage = MessageReverse<Real>;
    constexpr int kMost = kMostPerLane<Real, Width>;
    if (stage.edges.atom_count <= few_atoms_for_messages())
        launch_shape<Stage, Real, Width, 1>("reversing messages", reverse_kernel<Real, Width, 1>, stage, stream);
    else
        launch_shape<Stage, Real, Width, kMost>("reversing messages", reverse_kernel<Real, Width, kMost>, stage,
                                                stream);
}

}  // namespace

void sum_messages(int width, const MessageStage<double>& stage, cudaStream_t stream) {
    if (stage.edges.atom_count == 0) return;
    with_width(width, [&](auto F) { sum_messages_of_width<double, F>(stage, stream); });
}
void reverse_messages(int width, const MessageReverse<double>& stage, cudaStream_t stream) {
    if (stage.edges.atom_count == 0) return;
    with_width(width, [&](auto F) { reverse_messages_of_width<double, F>(stage, stream); });
}

}  // namespace mlff::painn::gpu
