// SPDX-License-Identifier: MIT
// Shared parts of the kernels of fused messages: chunks of edges, items of work, products of radial functions, loads of
// a warp.
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

constexpr int kSteps = 4;                                                   // of a product: at most 64 functions
constexpr int kWeightsOfPath = kSteps * RadialProduct::kWeightPlanes * 32;  // of a lot, 16 bytes each
constexpr int64_t kHarmonicsOfTile = kMostHarmonics * kEdgesPerTile;        // numbers

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

// The degree of a harmonic, at most kMostHarmonicDegree.
__device__ __forceinline__ int degree_of(int harmonic) {
    return harmonic == 0 ? 0 : harmonic < 4 ? 1 : harmonic < 9 ? 2 : 3;
}
__device__ __forceinline__ float distance_power(float distance, int power) {
    float product = 1;
    for (int i = 0; i < power; ++i) product *= distance;
    return product;
}

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

// ---- items of work, and loads of a warp ----

// What a warp works on.
struct Item {
    int lot;
    int64_t atom;
    int index;    // of the lot's passes or, in the reverse, of its groups and of the parts of the atom's tiles
    int channel;  // the first of this lane; may be beyond those of a path: weights are zero there, and nothing is
                  // stored
};

// Shared memory: the weights of a lot.
__device__ __forceinline__ uint4* shared_memory() {
    return reinterpret_cast<uint4*>(mlff::gpu::launched_shared_memory());
}
// The weights are there after wait_for_weights() and a barrier.
__device__ __forceinline__ void load_weights(const FusedMessages::View& view, const FusedMessages::Lot& lot) {
    const int size = lot.path_count * kWeightsOfPath;
    for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x))
        mlff::gpu::start_copy(shared_memory() + i, view.weights + lot.first_weight + i, 16);
    mlff::gpu::end_copies();
}
__device__ __forceinline__ void wait_for_weights() { mlff::gpu::wait_for_copies<0>(); }

// Which items the blocks of a kernel take. All blocks of one lot follow those of the lot before.
template <bool kIsReverse>
class LotItems {
public:
    __device__ LotItems(const FusedMessages::View& view, int32_t atom_count)
        : view_(view),
          atom_count_(atom_count),
          warps_(view.warps_with_item > 0 ? view.warps_with_item : static_cast<int>(blockDim.x / 32)) {}

    // For all atoms of the system. A chunk has no more.
    __device__ int items_of(int lot) const { return atom_count_ * items_per_atom(lot); }
    __device__ int items_per_atom(int lot) const {
        return kIsReverse ? view_.lots[lot].group_count * view_.tile_parts : view_.lots[lot].pass_count;
    }
    // Blocks that begin with `lot`: as many as it needs or, if blocks take items, by its share of the work.
    __device__ int first_block(int lot) const {
        if (view_.warps_with_item == 0) {
            const int64_t before = lot < view_.lot_count ? view_.lots[lot].cost_before : view_.cost;
            return static_cast<int>((before * gridDim.x + view_.cost / 2) / view_.cost);
        }
        int blocks = 0;
        for (int before = 0; before < lot; ++before) blocks += (items_of(before) + warps_ - 1) / warps_;
        return blocks;
    }
    __device__ bool begins_with(int lot) const {
        const int block = static_cast<int>(blockIdx.x);
        return first_block(lot) <= block && (block < first_block(lot + 1) || lot + 1 == view_.lot_count);
    }
    // The item that this warp begins with, if its block begins with `lot`. May be beyond the last.
    __device__ int first_item(int lot) const {
        const int warp = static_cast<int>(threadIdx.x / 32);
        if (warp >= warps_) return items_of(lot);
        return (static_cast<int>(blockIdx.x) - first_block(lot)) * warps_ + warp;
    }
    // How many items of the lot are those that warps begin with.
    __device__ int begun_count(int lot) const { return (first_block(lot + 1) - first_block(lot)) * warps_; }
    __device__ int32_t* taken(int lot) const { return view_.taken + (kIsReverse ? view_.lot_count : 0) + lot; }

private:
    const FusedMessages::View& view_;
    int32_t atom_count_;
    int warps_;
};

// The lot with the most work left, for a warp; -1: none. `atom_count` is that of the chunk. Other blocks take items
// meanwhile, so the answer is a guess.
template <bool kIsReverse>
__device__ int lot_with_most_left(const FusedMessages::View& view, const LotItems<kIsReverse>& items, int atom_count) {
    int64_t most = 0;
    int found = -1;
    for (int lot = static_cast<int>(threadIdx.x % 32); lot < view.lot_count; lot += 32) {
        const int count = atom_count * items.items_per_atom(lot);
        if (count == 0) continue;
        const int taken = *static_cast<volatile int32_t*>(items.taken(lot));
        const int64_t left = (int64_t{view.lots[lot].cost} << 20) * (count - items.begun_count(lot) - taken) / count;
        if (left > most) {
            most = left;
            found = lot;
        }
    }
    for (int distance = 16; distance >= 1; distance /= 2) {
        const int64_t other = __shfl_xor_sync(kAllLanes, most, distance);
        const int its = __shfl_xor_sync(kAllLanes, found, distance);
        if (other > most || (other == most && its > found)) {
            most = other;
            found = its;
        }
    }
    return found;
}

// What a warp begins with.
struct Work {
    int lot, number;  // of the item in its lot
    int32_t first_atom;
    uint32_t atom_count;  // in the chunk
};

// Loads the weights, which depend on the model alone, before it waits for the previous kernel.
template <bool kIsReverse>
__device__ __forceinline__ Work start_work(const FusedMessages::View& view, const EdgesView<float>& edges) {
    __shared__ AtomRange atoms;
    __shared__ int lot_of_block;
    const LotItems<kIsReverse> items(view, edges.atom_count);
    for (int lot = static_cast<int>(threadIdx.x); lot < view.lot_count; lot += static_cast<int>(blockDim.x))
        if (items.begins_with(lot)) lot_of_block = lot;
    __syncthreads();
    Work work;
    work.lot = uniform(lot_of_block);
    work.number = uniform(items.first_item(work.lot));
    load_weights(view, view.lots[work.lot]);
    mlff::gpu::await_predecessor();
    if (threadIdx.x == 0) atoms = atoms_of_chunk(view, edges);
    wait_for_weights();
    __syncthreads();
    work.first_atom = static_cast<int32_t>(atoms.begin);
    work.atom_count = static_cast<uint32_t>(atoms.end - atoms.begin);
    return work;
}

// Calls visit(item) for the items of this warp. Which warp takes an item changes no result. The number of the next item
// is asked for before an item is visited.
template <bool kIsReverse, class Visit>
__device__ __forceinline__ void for_each_item(const FusedMessages::View& view, const EdgesView<float>& edges, Work work,
                                              const Visit& visit) {
    __shared__ int next_lot;
    const LotItems<kIsReverse> items(view, edges.atom_count);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const auto take = [&] { return items.begun_count(work.lot) + atomicAdd(items.taken(work.lot), 1); };
    while (true) {
        const int count = static_cast<int>(work.atom_count) * items.items_per_atom(work.lot),
                  channel = view.lots[work.lot].first_channel + lane / 4 * 4;
        while (work.number < count) {
            int next = count;
            if (view.warps_with_item == 0 && lane == 0) next = take();
            const auto number = static_cast<uint32_t>(work.number);
            visit(Item{work.lot, work.first_atom + static_cast<int64_t>(number % work.atom_count),
                       static_cast<int>(number / work.atom_count), channel});
            work.number = uniform(next);
        }
        if (view.warps_with_item > 0) return;
        __syncthreads();  // the weights are not needed any more
        if (threadIdx.x < 32) {
            const int found = lot_with_most_left(view, items, static_cast<int>(work.atom_count));
            if (lane == 0) next_lot = found;
        }
        __syncthreads();
        work.lot = uniform(next_lot);
        if (work.lot < 0) return;
        load_weights(view, view.lots[work.lot]);
        if (lane == 0) work.number = take();
        work.number = uniform(work.number);
        wait_for_weights();
        __syncthreads();
    }
}

// Radial weights of four channels for two edges of each tile. `path` counts within the lot. functions[t] are those of
// tile t, or values and slopes of one tile. All loads of functions are issued before the first product.
template <int Tiles>
__device__ __forceinline__ void multiply_functions(const FusedMessages::View& view, int path,
                                                   const uint4* const (&functions)[Tiles],
                                                   float (&radial)[Tiles][4][2]) {
    using Product = RadialProduct;
#pragma unroll
    for (int t = 0; t < Tiles; ++t)
#pragma unroll
        for (int c = 0; c < 4; ++c) radial[t][c][0] = radial[t][c][1] = 0;
    const uint4* weights = shared_memory() + path * kWeightsOfPath + threadIdx.x % 32;
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

// Loads features[edge][a][channel] of the senders of `Edges` edges from `edge` on; zero for edges of other atoms.
template <int Edges, int Components>
__device__ __forceinline__ void load_features(const int32_t* sender, const RowsView<const float>& senders, int edge,
                                              const OwnEdges& own, int offset, int stride,
                                              float (&features)[Edges][Components][4]) {
#pragma unroll
    for (int e = 0; e < Edges; ++e) {
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
