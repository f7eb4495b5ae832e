// SPDX-License-Identifier: MIT
// What follows the reverse of fused messages: gradients of edges and of senders. Included by fused_messages.cu only.
#pragma once

#include "equivariant/gpu/fused_edges.cuh"

namespace mlff::equivariant::gpu {
namespace {

// Adds up the partial gradients of edges in a fixed order. `i` counts the edges of the chunk and the gradients of each.
__device__ void finish_gradient(const FusedMessages::View& view, const EdgesView<float>& edges,
                                const float* densities_gradient, const EdgeGradientsView<float>& gradients,
                                bool accumulate, int64_t i) {
    const int slots = view.slot_count, columns = edges.harmonic_count + 1;
    const int64_t edge = view.begin + i / columns;
    const int column = static_cast<int>(i % columns);
    if (edge >= min(view.end, edges.first[edges.atom_count])) return;
    const bool is_harmonic = column < edges.harmonic_count;
    const float* partials = view.partials + (edge - view.begin) * slots * FusedMessages::kPartialStride;
    const auto sum_of = [&](int number) {
        float sum = 0;
        for (int slot = 0; slot < slots; ++slot) sum += partials[slot * FusedMessages::kPartialStride + number];
        return sum;
    };
    float sum = sum_of(is_harmonic ? column : kMostHarmonics);
    const float distance = view.has_distance_power ? static_cast<float>(edges.distance[edge]) : 1.0f;
    if (is_harmonic) {
        if (view.has_distance_power) sum *= distance_power(distance, degree_of(column));
        float* to = gradients.harmonics + edge * edges.harmonic_count + column;
        *to = accumulate ? *to + sum : sum;
        return;
    }
    if (view.has_distance_power)
        for (int harmonic = 1; harmonic < edges.harmonic_count; ++harmonic) {
            const int degree = degree_of(harmonic);
            sum += sum_of(harmonic) * static_cast<float>(degree) * distance_power(distance, degree - 1) *
                   edges.harmonics[edge * edges.harmonic_count + harmonic];
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

// Launch: one thread for each edge of the chunk and each of its gradients.
__global__ void __launch_bounds__(kBlockThreads)
    finish_kernel(FusedMessages::View view, EdgesView<float> edges, const float* densities_gradient,
                  EdgeGradientsView<float> gradients, bool accumulate) {
    mlff::gpu::await_predecessor();
    finish_gradient(view, edges, densities_gradient, gradients, accumulate,
                    int64_t{blockIdx.x} * kBlockThreads + threadIdx.x);
}

// Adds to the gradient of an atom's features from the edges of the chunk along which the atom sends; edges from
// *known_end on have no gradients. The indices of these edges are gathered first, in order. Groups of kBlockThreads
// threads take them in turn. For all threads of a block of `Groups` groups.
template <int Groups>
__device__ void gather_gradient(const FusedMessages::View& view, const EdgesView<float>& edges,
                                const int64_t* known_end, const int64_t* reverse_edge, float* senders_gradient,
                                bool adds, int64_t atom) {
    constexpr int kThreads = kBlockThreads * Groups, kAllWarps = kThreads / 32;
    __shared__ int32_t found[kThreads];
    __shared__ int found_by_warp[kAllWarps];
    __shared__ float4 sums[Groups > 1 ? Groups - 1 : 1][kBlockThreads];
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

// Launch: one block of kBlockThreads threads per atom.
__global__ void __launch_bounds__(kBlockThreads)
    gather_kernel(FusedMessages::View view, EdgesView<float> edges, const int64_t* known_end,
                  const int64_t* reverse_edge, float* senders_gradient, bool adds) {
    mlff::gpu::await_predecessor();
    gather_gradient<1>(view, edges, known_end, reverse_edge, senders_gradient, adds, blockIdx.x);
}

// Both in one launch, for few atoms: several groups of threads share an atom. Launch: `finish_blocks` blocks, which
// have a thread for each gradient of an edge, and one block per atom, all of kFewGroups groups.
constexpr int kFewGroups = 4;
__global__ void __launch_bounds__(kBlockThreads* kFewGroups)
    finish_and_gather_kernel(FusedMessages::View view, EdgesView<float> edges, const float* densities_gradient,
                             EdgeGradientsView<float> gradients, bool accumulate, EdgesView<float> of_senders,
                             const int64_t* reverse_edge, float* senders_gradient, bool adds, int finish_blocks) {
    mlff::gpu::await_predecessor();
    const int block = static_cast<int>(blockIdx.x);
    if (block < finish_blocks)
        finish_gradient(view, edges, densities_gradient, gradients, accumulate,
                        int64_t{block} * kBlockThreads * kFewGroups + threadIdx.x);
    else
        gather_gradient<kFewGroups>(view, of_senders, edges.first + edges.atom_count, reverse_edge, senders_gradient,
                                    adds, block - finish_blocks);
}

}  // namespace
}  // namespace mlff::equivariant::gpu
