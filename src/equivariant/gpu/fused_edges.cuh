// SPDX-License-Identifier: MIT
// Shared parts of the kernels of fused messages: chunks of edges and their preparation, products of radial functions,
// loads of a warp. Included by fused_messages.cu only.
#pragma once

#include <utility>

#include "equivariant/gpu/fused_messages.h"
#include "equivariant/gpu/path_couplings.h"
#include "equivariant/gpu/path_shapes.h"
#include "gpu/engine/instructions.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"

namespace mlff::equivariant::gpu {
namespace {

constexpr int kSteps = 4;  // of a product: at most 64 functions
// Warps per block: each thread then has 168 or 255 registers. With more warps less time would be spent waiting for
// memory, but features would have to be loaded again for every path, which costs more.
constexpr int most_warps(int components) { return components <= 3 ? 12 : 8; }

constexpr int64_t kHarmonicsOfTile = kMostHarmonics * kEdgesPerTile;  // numbers

constexpr int rounded_up(int count, int to) { return (count + to - 1) / to * to; }

// Loads adjacent numbers, 16 bytes at a time.
template <int Count>
__device__ __forceinline__ void load(const float* from, float (&to)[Count]) {
    static_assert(Count % 4 == 0);
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
        const float4 four = __ldg(reinterpret_cast<const float4*>(from + i));
        to[i] = four.x;
        to[i + 1] = four.y;
        to[i + 2] = four.z;
        to[i + 3] = four.w;
    }
}
__device__ __forceinline__ void store(const float (&from)[4], float* to) {
    *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
}

// Tells the compiler that a number is the same in all lanes, so that branches on it do not diverge.
__device__ __forceinline__ int uniform(int number) { return __shfl_sync(kAllLanes, number, 0); }

// ---- chunks ----

// The first atom whose edges end after `edge`.
__device__ int64_t atom_ending_after(const int64_t* first, int64_t atom_count, int64_t edge) {
    int64_t low = 0, high = atom_count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (first[middle + 1] > edge)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// Atoms that have edges in the chunk. An atom whose edges begin in one chunk and end in a later one is in both. An atom
// without edges is in one chunk.
struct AtomRange {
    int64_t begin = 0, end = 0;
};
template <class View>
__device__ AtomRange atoms_of_chunk(const View& view, const EdgesView<float>& edges) {
    AtomRange range;
    if (view.begin > 0) range.begin = atom_ending_after(edges.first, edges.atom_count, view.begin);
    range.end = edges.atom_count;
    if (!view.is_last) {
        range.end = atom_ending_after(edges.first, edges.atom_count, view.end);
        if (range.end < edges.atom_count && edges.first[range.end] < view.end) ++range.end;
    }
    return range;
}

// Computes functions and scaled harmonics of the edges of a chunk, zero beyond the last edge. Also clears view.taken.
// Launch: WarpsPerTile warps per tile.
template <bool kWithSlopes, int WarpsPerTile>
__global__ void __launch_bounds__(kBlockThreads) prepare_kernel(FusedMessages::View view, EdgesView<float> edges) {
    mlff::gpu::await_predecessor();
    if (blockIdx.x == 0 && threadIdx.x < view.slice_count) view.taken[threadIdx.x] = 0;
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
    for (int i = 0; i < 4; ++i)
        scaled[i] = edge_of_harmonics < edge_count && first + i < edges.harmonic_count
                        ? view.harmonic_scale * __ldg(harmonics + i)
                        : float(0);
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

// ---- items of work, and loads of a warp ----

// The slice of channels and the items of a warp. Items are all atoms for one pass or group, then all atoms for the
// next, so that each warp gets its part of the heavy ones.
struct Worker {
    int slice;
    int channel;  // the first of this lane; may be beyond those of a path: weights are zero there, and nothing is
                  // stored
    int32_t first_atom, first_item, item_stride, item_count;
    uint32_t atom_count;  // in the chunk
    int32_t* taken;       // of this slice, beyond the first item of each warp; for the reverse only

    // For the reverse, whose items differ more. A warp that has finished an item takes the next one that no other has
    // taken. Which warp takes it changes no result. Calls visit(item). The number of the next item is asked for before
    // the item is visited.
    template <class Visit>
    __device__ __forceinline__ void for_each_item(const Visit& visit) const {
        int item = first_item;
        while (item < item_count) {
            int next = 0;
            if (threadIdx.x % 32 == 0) next = item_stride + atomicAdd(taken, 1);
            visit(item);
            item = uniform(next);
        }
    }
};

// Shared memory: the weights of the slice.
__device__ __forceinline__ uint4* shared_memory() {
    return reinterpret_cast<uint4*>(mlff::gpu::launched_shared_memory());
}
__device__ __forceinline__ int shared_weights_size(const FusedMessages::View& view) {
    return view.path_count * kSteps * RadialProduct::kWeightPlanes * 32;
}

// Loads the weights, which depend on the model alone, before it waits for the previous kernel.
__device__ Worker start_work(const FusedMessages::View& view, const EdgesView<float>& edges, int items_per_atom) {
    __shared__ AtomRange atoms;
    const int size = shared_weights_size(view);
    const int warps = static_cast<int>(blockDim.x / 32), warp = uniform(static_cast<int>(threadIdx.x / 32)),
              lane = static_cast<int>(threadIdx.x % 32);
    Worker worker;
    worker.slice = static_cast<int>(blockIdx.x) % view.slice_count;
    for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x))
        shared_memory()[i] = __ldg(view.weights + int64_t{worker.slice} * size + i);
    mlff::gpu::await_predecessor();
    if (threadIdx.x == 0) atoms = atoms_of_chunk(view, edges);
    __syncthreads();
    worker.channel = worker.slice * kChannelsPerSlice + lane / 4 * 4;
    worker.first_atom = static_cast<int32_t>(atoms.begin);
    worker.atom_count = static_cast<uint32_t>(atoms.end - atoms.begin);
    worker.item_count = static_cast<int32_t>(atoms.end - atoms.begin) * items_per_atom;
    worker.taken = view.taken + worker.slice;
    worker.first_item = static_cast<int32_t>(blockIdx.x) / view.slice_count * warps + warp;
    worker.item_stride = static_cast<int32_t>(gridDim.x) / view.slice_count * warps;
    return worker;
}

// Radial weights of four channels for two edges of each tile. functions[t] are those of tile t, or values and slopes of
// one tile. All loads of functions are issued before the first product.
template <int Tiles>
__device__ __forceinline__ void multiply_functions(const FusedMessages::View& view, int path,
                                                   const uint4* const (&functions)[Tiles],
                                                   float (&radial)[Tiles][4][2]) {
    using Product = RadialProduct;
#pragma unroll
    for (int t = 0; t < Tiles; ++t)
#pragma unroll
        for (int c = 0; c < 4; ++c) radial[t][c][0] = radial[t][c][1] = 0;
    const uint4* weights = shared_memory() + path * kSteps * Product::kWeightPlanes * 32 + threadIdx.x % 32;
    Product::Functions of[kSteps][Tiles];
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
#pragma unroll
        for (int t = 0; t < Tiles; ++t)
            of[s][t] = Product::load_functions(functions[t] + s * Product::kFunctionPlanes * 32);
#pragma unroll
    for (int s = 0; s < kSteps; ++s)
        Product::add(weights + s * Product::kWeightPlanes * 32, of[s], view.is_fast, radial);
}

// An atom's edges in the chunk, counted from the beginning of the chunk.
struct OwnEdges {
    int begin, end;

    template <class View>
    __device__ OwnEdges(const View& view, const EdgesView<float>& edges, int64_t atom)
        : begin(uniform(static_cast<int>(max(edges.first[atom], view.begin) - view.begin))),
          end(uniform(static_cast<int>(min(edges.first[atom + 1], view.end) - view.begin))) {}
    __device__ OwnEdges(int first, int beyond) : begin(first), end(beyond) {}
    // Those in one of `count` nearly equal parts of the tiles.
    __device__ OwnEdges part(int index, int count) const {
        const int tiles = tile_end() - first_tile(), first = first_tile() + tiles * index / count,
                  beyond = first_tile() + tiles * (index + 1) / count;
        return {uniform(max(begin, first * kEdgesPerTile)), uniform(min(end, beyond * kEdgesPerTile))};
    }
    __device__ bool has(int edge) const { return edge >= begin && edge < end; }
    __device__ int first_tile() const { return begin / kEdgesPerTile; }
    __device__ int tile_end() const {  // an atom without edges has no tiles
        return begin < end ? (end + kEdgesPerTile - 1) / kEdgesPerTile : first_tile();
    }
};

// Loads features[edge][a][channel] of the senders of edges 2 q and 2 q + 1 of the tile; zero for edges of other atoms.
template <int Components>
__device__ __forceinline__ void load_features(const int32_t* sender, const RowsView<const float>& senders, int edge,
                                              const OwnEdges& own, int offset, int stride,
                                              float (&features)[2][Components][4]) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const bool is_own = own.has(edge + e);
        const float* from = senders.of(__ldg(sender + (is_own ? edge + e : own.begin))) + offset;
#pragma unroll
        for (int a = 0; a < Components; ++a) {
            load(from + a * stride, features[e][a]);
#pragma unroll
            for (int c = 0; c < 4; ++c) features[e][a][c] = is_own ? features[e][a][c] : float(0);
        }
    }
}

// Loads the harmonics of one degree of one edge. `harmonics` are those of the tile; `edge` counts within it.
template <int Degree>
__device__ __forceinline__ void load_harmonics(const float* harmonics, int edge, float (&to)[2 * Degree + 1]) {
    constexpr int kFirst = Degree * Degree, kBeyond = kFirst + 2 * Degree + 1;
#pragma unroll
    for (int four = kFirst / 4; four < (kBeyond + 3) / 4; ++four) {
        const float* from = harmonics + (four * kEdgesPerTile + edge) * 4;
        if (kBeyond == 4 * four + 1) {  // only one of the four
            to[kBeyond - 1 - kFirst] = __ldg(from);
            continue;
        }
        float part[4];
        load(from, part);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (4 * four + i >= kFirst && 4 * four + i < kBeyond) to[4 * four + i - kFirst] = part[i];
    }
}

// Calls visit(Constant<0>), visit(Constant<1>), ... The compiler does not unroll large loops, even if told to.
template <int Count, class Visit>
__device__ __forceinline__ void for_each_index(const Visit& visit) {
    [&]<int... I>(std::integer_sequence<int, I...>) MLFF_INLINED { (visit(Constant<I>()), ...); }
    (std::make_integer_sequence<int, Count>());
}
// Calls visit(Constant<index of a term>) for each term of component `In` of the features.
template <class Couplings, int In, class Visit>
__device__ __forceinline__ void for_each_term(const Visit& visit) {
    for_each_index<Couplings::kTermCount>([&]<int Index>(Constant<Index> index) MLFF_INLINED {
        if constexpr (Couplings::kTerms.of[Index].in == In) visit(index);
    });
}
// Shares of component `In` of the features. Those that are always zero are not set.
template <class Couplings, int In>
__device__ __forceinline__ void compute_shares(const float (&harmonics)[Couplings::kHarmonics],
                                               float (&shares)[Couplings::kOut]) {
    for_each_term<Couplings, In>([&]<int Index>(Constant<Index>) MLFF_INLINED {
        constexpr PathTerm term = Couplings::kTerms.of[Index];
        const float product = term.value * harmonics[term.harmonic];
        shares[term.out] = term.is_first ? product : shares[term.out] + product;
    });
}

// Calls visit(PathCouplings) for a path with these components and a harmonic of this degree.
template <int Components, int Rows, class Visit>
__host__ __device__ __forceinline__ void visit_couplings(int degree, const Visit& visit) {
    const auto visit_if_any = [&]<int Degree>(Constant<Degree>) MLFF_INLINED {
        using Couplings = PathCouplings<Components / 2, Degree, Rows / 2>;
        if constexpr (Couplings::kExists) visit(Couplings());
    };
    static_assert(kMostHarmonicDegree == 3);
    switch (degree) {
        case 0: return visit_if_any(Constant<0>());
        case 1: return visit_if_any(Constant<1>());
        case 2: return visit_if_any(Constant<2>());
        default: return visit_if_any(Constant<3>());
    }
}

// Prefetches what a warp will read for its next tile: harmonics, functions, and one cache line of features for each
// component.
template <int Components>
__device__ __forceinline__ void prefetch_tile(const FusedMessages::View& view, const int32_t* sender,
                                              const RowsView<const float>& senders, int tile, const OwnEdges& own,
                                              int offset, int stride, bool with_slopes) {
    const int lane = static_cast<int>(threadIdx.x % 32), e = lane / 4, q = lane % 4;
    constexpr int kLine = 128 / sizeof(float);
    const int edge = tile * kEdgesPerTile + e;
    if (lane < kHarmonicsOfTile / kLine) prefetch_line(view.harmonics + tile * kHarmonicsOfTile + lane * kLine);
    const int function_lines = kSteps * RadialProduct::kFunctionPlanes * 4;
    for (int line = lane; line < function_lines; line += 32) {
        const int64_t at = int64_t{tile} * function_lines * 8 + line * 8;
        prefetch_line(view.functions + at);
        if (with_slopes) prefetch_line(view.function_slopes + at);
    }
    if (q >= Components || !own.has(edge)) return;
    const float* features = senders.of(__ldg(sender + edge)) + offset;
    for (int a = q; a < Components; a += 4) prefetch_line(features + a * stride);
}

}  // namespace
}  // namespace mlff::equivariant::gpu
