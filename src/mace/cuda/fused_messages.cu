// SPDX-License-Identifier: MIT
#include "mace/cuda/fused_messages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/cuda_check.h"
#include "mace/cuda/device_tables.h"
#include "mace/cuda/warp.h"

namespace mlff::mace::cuda {
namespace {

using mlff::cuda::check;
using mlff::cuda::launch;
using mlff::cuda::LaunchShape;

constexpr int kSteps = 4;  // of products: at most 64 functions
// Warps of a block: 168 or 255 registers for each thread. More warps would wait for memory less, but have to load features again for every path,
// which costs more.
constexpr int most_warps(int components) { return components <= 3 ? 12 : 8; }

constexpr int rounded_up(int count, int to) { return (count + to - 1) / to * to; }

// Shares of a path are [a][row], with rows that begin at multiples of 16 bytes, or where there is one row only, [a]. Of a tile of edges, the first
// 16 bytes of all edges lie together, then the next: what a warp loads at once is one line.
constexpr int share_row(int rows) { return rows == 1 ? 1 : rounded_up(rows, 4); }
constexpr int padded_shares(int components, int rows) { return rounded_up(components * share_row(rows), 4); }
__device__ __forceinline__ int share_place(int share) {  // of the first edge of a tile
    constexpr int kEach = 16 / sizeof(float);
    return share / kEach * kEach * kEdgesPerTile + share % kEach;
}

// Numbers next to each other, 16 bytes at a time.
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
__device__ __forceinline__ void store(const float (&from)[4], float* to) { *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]); }

// Tells the compiler that a number is the same in all lanes, so that what depends on it does not diverge.
__device__ __forceinline__ int uniform(int number) { return __shfl_sync(kAllLanes, number, 0); }

__device__ __forceinline__ void prefetch(const void* line) { asm volatile("prefetch.global.L1 [%0];" ::"l"(line)); }

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

// Atoms that have edges in the chunk. One whose edges begin in a chunk and end in a later one is in both; one without edges is in one chunk.
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

// Launch: a warp for each tile of the chunk. Functions and shares of its edges, zero beyond the last edge.
template <bool kWithSlopes>
__global__ void __launch_bounds__(kBlockThreads) prepare_kernel(FusedMessages::View view, EdgesView<float> edges) {
    const int64_t tile = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
    const int64_t edge_count = min(view.end, edges.first[edges.atom_count]);
    const int64_t first_edge = view.begin + tile * kEdgesPerTile;
    if (first_edge >= edge_count) return;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int64_t edge = first_edge + lane / 4;
    const bool is_edge = edge < edge_count;
    cpu::SplinePoint<float> point;
    if (is_edge) {
        int table = 0;
        if (view.receiver_stride + view.sender_stride > 0)
            table = edges.elements[atom_ending_after(edges.first, edges.atom_count, edge)] * view.receiver_stride + edges.elements[edges.sender[edge]] * view.sender_stride;
        point = view.tables[table].at(edges.distance[edge]);
    }
    constexpr int kPlanes = RadialProduct::kFunctionPlanes;
    for (int step = 0; step < kSteps; ++step) {
        const int column = step * kFunctionsPerStep + lane % 4 * 4;
        float values[4] = {}, slopes[4] = {};
        if (is_edge && column < view.function_count) {
            load(point.center + column, values);
#pragma unroll
            for (int t = 0; t < cpu::kSplineOrder; ++t) {
                float differences[4];
                load(point.differences + t * point.stride + column, differences);
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
    const float* harmonics = edges.harmonics + first_edge * edges.harmonic_count;
    for (int share = lane; share < view.share_stride; share += 32) {
        float sums[kEdgesPerTile] = {};
        for (int t = view.first_share_term[share]; t < view.first_share_term[share + 1]; ++t) {
            const auto term = view.share_terms[t];
#pragma unroll
            for (int e = 0; e < kEdgesPerTile; ++e)
                if (first_edge + e < edge_count) sums[e] += term.value * harmonics[e * edges.harmonic_count + term.index];
        }
#pragma unroll
        for (int e = 0; e < kEdgesPerTile; ++e) view.shares[tile * kEdgesPerTile * view.share_stride + share_place(share) + e * (16 / sizeof(float))] = sums[e];
    }
}

// Launch: a warp for each atom.
__global__ void __launch_bounds__(kBlockThreads) sum_densities(FusedMessages::View view, EdgesView<float> edges, float* densities) {
    const int64_t atom = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
    if (atom >= edges.atom_count) return;
    const int lane = static_cast<int>(threadIdx.x % 32);
    float sum = 0;
    for (int64_t edge = edges.first[atom] + lane; edge < edges.first[atom + 1]; edge += 32) {
        const int table = edges.elements[atom] * view.receiver_stride + edges.elements[edges.sender[edge]] * view.sender_stride;
        sum += cpu::value_at(view.tables[table].at(edges.distance[edge]), view.density_column);
    }
    sum = sum_over_warp(sum);
    if (lane == 0) densities[atom] = sum;
}

// ---- what both directions share ----

// A warp's place: its slice of the channels, and the atoms and items that are its own.
struct Worker {
    int slice;
    int channel;  // the first of this lane, also where the path has fewer: its weights are zero there, and nothing is stored
    int32_t first_atom, first_item, item_stride;
    uint32_t atom_count;  // in the chunk; items are all atoms for one pass or group, then for the next, so that each warp gets its part of the heavy ones
    int64_t item_count;
};

// Shared memory: the weights of the slice, then scratch memory of each warp.
__device__ __forceinline__ uint4* shared_memory() {
    extern __shared__ __align__(16) uint4 shared[];
    return shared;
}
__device__ __forceinline__ int shared_weights_size(const FusedMessages::View& view) {
    return view.path_count * kSteps * RadialProduct::kWeightPlanes * 32;
}

__device__ Worker start_work(const FusedMessages::View& view, const EdgesView<float>& edges, int items_per_atom) {
    __shared__ AtomRange atoms;
    const int size = shared_weights_size(view);
    const int warps = static_cast<int>(blockDim.x / 32), warp = uniform(static_cast<int>(threadIdx.x / 32)), lane = static_cast<int>(threadIdx.x % 32);
    Worker worker;
    worker.slice = static_cast<int>(blockIdx.x) % view.slice_count;
    if (threadIdx.x == 0) atoms = atoms_of_chunk(view, edges);
    for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) shared_memory()[i] = __ldg(view.weights + int64_t{worker.slice} * size + i);
    __syncthreads();
    worker.channel = worker.slice * kChannelsPerSlice + lane / 4 * 4;
    worker.first_atom = static_cast<int32_t>(atoms.begin);
    worker.atom_count = static_cast<uint32_t>(atoms.end - atoms.begin);
    worker.item_count = (atoms.end - atoms.begin) * items_per_atom;
    worker.first_item = static_cast<int32_t>(blockIdx.x) / view.slice_count * warps + warp;
    worker.item_stride = static_cast<int32_t>(gridDim.x) / view.slice_count * warps;
    return worker;
}

// Radial weights of four channels for two edges of each tile: functions[t] are those of tile t, or values and slopes of one. All functions
// are on their way before the first product.
template <int Tiles>
__device__ __forceinline__ void multiply_functions(const FusedMessages::View& view, int path, const uint4* const (&functions)[Tiles],
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
        for (int t = 0; t < Tiles; ++t) of[s][t] = Product::load_functions(functions[t] + s * Product::kFunctionPlanes * 32);
#pragma unroll
    for (int s = 0; s < kSteps; ++s) Product::add(weights + s * Product::kWeightPlanes * 32, of[s], view.is_fast, radial);
}

// An atom's edges in the chunk, counted from its beginning.
struct OwnEdges {
    int begin, end;

    template <class View>
    __device__ OwnEdges(const View& view, const EdgesView<float>& edges, int64_t atom)
        : begin(uniform(static_cast<int>(max(edges.first[atom], view.begin) - view.begin))), end(uniform(static_cast<int>(min(edges.first[atom + 1], view.end) - view.begin))) {}
    __device__ bool has(int edge) const { return edge >= begin && edge < end; }
    __device__ int first_tile() const { return begin / kEdgesPerTile; }
    __device__ int tile_end() const { return (end + kEdgesPerTile - 1) / kEdgesPerTile; }
};

// features[edge][a][channel] of the senders of edges 2 q, 2 q + 1 of the tile; zero for edges of other atoms.
template <int Components>
__device__ __forceinline__ void load_features(const int32_t* sender, const RowsView<const float>& senders, int edge, const OwnEdges& own, int offset, int stride,
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

// The shares of a path for one edge, loaded as they are used: all at once would take too many registers.
template <int Components, int Rows>
struct ShareRows {
    static constexpr int kEach = 16 / sizeof(float);
    const float* from;

    // `edge` of a tile, whose shares of the path begin at `shares`
    __device__ ShareRows(const float* shares, int edge) : from(shares + edge * kEach) {}
    __device__ __forceinline__ void load_row(int a, float (&share)[Rows]) const {
        if constexpr (Rows == 1) {
            share[0] = __ldg(from + share_place(a));
        } else {
#pragma unroll
            for (int i = 0; i < share_row(Rows); i += kEach) {
                float part[kEach];
                load(from + (a * share_row(Rows) + i) * kEdgesPerTile, part);
#pragma unroll
                for (int r = i; r < i + kEach && r < Rows; ++r) share[r] = part[r - i];
            }
        }
    }
};

// What a warp will read of its next tile: shares from `first_share` on, functions, features of one line for each component.
template <int Components>
__device__ __forceinline__ void prefetch_tile(const FusedMessages::View& view, const int32_t* sender, const RowsView<const float>& senders, int tile,
                                              const OwnEdges& own, int offset, int stride, int first_share, int share_count, bool with_slopes) {
    const int lane = static_cast<int>(threadIdx.x % 32), e = lane / 4, q = lane % 4;
    constexpr int kLine = 128 / sizeof(float);
    const int edge = tile * kEdgesPerTile + e;
    const float* shares = view.shares + int64_t{tile} * kEdgesPerTile * view.share_stride + first_share * kEdgesPerTile;
    for (int at = lane * kLine; at < share_count * kEdgesPerTile; at += 32 * kLine) prefetch(shares + at);
    const int function_lines = kSteps * RadialProduct::kFunctionPlanes * 4;
    for (int line = lane; line < function_lines; line += 32) {
        const int64_t at = int64_t{tile} * function_lines * 8 + line * 8;
        prefetch(view.functions + at);
        if (with_slopes) prefetch(view.function_slopes + at);
    }
    if (q >= Components || !own.has(edge)) return;
    const float* features = senders.of(__ldg(sender + edge)) + offset;
    for (int a = q; a < Components; a += 4) prefetch(features + a * stride);
}

// ---- forward ----

template <int... Rows>
struct Slots {
    static constexpr int kCount = sizeof...(Rows), kRows[] = {Rows...}, kTotal = (Rows + ...);
    static constexpr int first(int slot) {
        int sum = 0;
        for (int s = 0; s < slot; ++s) sum += kRows[s];
        return sum;
    }
};
using ScalarSlots = Slots<1, 3, 5, 7>;  // for senders of one component
using LowSlots = Slots<1, 3, 3, 5>;     // for others: twelve rows each
using HighSlots = Slots<5, 7>;
enum PassKind { kScalarPass, kLowPass, kHighPass };

template <int Components, int Tiles, class Slot>
__device__ __forceinline__ void sum_pass(const FusedMessages::View& view, const EdgesView<float>& edges, const RowsView<const float>& senders, const Worker& worker,
                         const FusedMessages::Pass& pass, int64_t atom, float* sums) {
    const int lane = static_cast<int>(threadIdx.x % 32), q = lane % 4;
    const int64_t first = edges.first[atom];
    const OwnEdges own(view, edges, atom);
    const bool is_channel = worker.channel < pass.stride;
    const int channel = is_channel ? worker.channel : 0;
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
                prefetch_tile<Components>(view, edges.sender + view.begin, senders, tile + t, own, pass.in_offset + worker.slice * kChannelsPerSlice, pass.stride,
                                          pass.first_share, pass.share_count, false);
        const int edge = tile * kEdgesPerTile + 2 * q;  // the first of the two edges of this lane, in the chunk
        float features[Tiles][2][Components][4];
#pragma unroll
        for (int t = 0; t < Tiles; ++t)
            load_features(edges.sender + view.begin, senders, edge + t * kEdgesPerTile, own, pass.in_offset + channel, pass.stride, features[t]);
        const uint4* functions[Tiles];
#pragma unroll
        for (int t = 0; t < Tiles; ++t) functions[t] = view.functions + int64_t{tile + t} * kSteps * RadialProduct::kFunctionPlanes * 32 + lane;
        const auto add_slot = [&]<int S>(std::integral_constant<int, S>) {
            const int path = uniform(pass.paths[S]);
            if (path < 0) return;
            constexpr int kRows = Slot::kRows[S], kFirst = Slot::first(S);
            float radial[Tiles][4][2];
            multiply_functions(view, path, functions, radial);
            const float* shares = view.shares + (int64_t{tile} * view.share_stride + uniform(view.paths[path].first_share)) * kEdgesPerTile;
#pragma unroll
            for (int t = 0; t < Tiles; ++t) {
                if (t >= tiles_left) break;
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const ShareRows<Components, kRows> rows(shares + t * kEdgesPerTile * view.share_stride, 2 * q + e);
#pragma unroll
                    for (int a = 0; a < Components; ++a) {
                        float share[kRows];
                        rows.load_row(a, share);
#pragma unroll
                        for (int c = 0; c < 4; ++c) {
                            const float weighed = radial[t][c][e] * features[t][e][a][c];
#pragma unroll
                            for (int r = 0; r < kRows; ++r) sum[kFirst + r][c] += share[r] * weighed;
                        }
                    }
                }
            }
        };
        [&]<int... S>(std::integer_sequence<int, S...>) { (add_slot(std::integral_constant<int, S>{}), ...); }(std::make_integer_sequence<int, Slot::kCount>{});
    }
    const auto write_slot = [&]<int S>(std::integral_constant<int, S>) {
        constexpr int kRows = Slot::kRows[S], kFirst = Slot::first(S);
        const int path = uniform(pass.paths[S]);
        float* to = path < 0 ? nullptr : sums + atom * view.sums_size + view.paths[path].out_offset + channel;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                sum[kFirst + r][c] += __shfl_xor_sync(kAllLanes, sum[kFirst + r][c], 1);
                sum[kFirst + r][c] += __shfl_xor_sync(kAllLanes, sum[kFirst + r][c], 2);
            }
            if (!to || !is_channel || (kFirst + r) % 4 != q) continue;
            if (first < view.begin) {  // the rest of an atom of the chunk before
#pragma unroll
                for (int c = 0; c < 4; ++c) sum[kFirst + r][c] += to[r * pass.stride + c];
            }
            store(sum[kFirst + r], to + r * pass.stride);
        }
    };
    [&]<int... S>(std::integer_sequence<int, S...>) { (write_slot(std::integral_constant<int, S>{}), ...); }(std::make_integer_sequence<int, Slot::kCount>{});
}

// Launch: a multiple of slice_count blocks, which share the items of the chunk.
template <int Most>
__global__ void __launch_bounds__(32 * most_warps(Most), 1) sum_kernel(FusedMessages::View view, EdgesView<float> edges, RowsView<const float> senders, float* sums) {
    const Worker worker = start_work(view, edges, view.pass_count);
    constexpr int kTiles = 2;
    for (int64_t item = worker.first_item; item < worker.item_count; item += worker.item_stride) {
        const int64_t atom = worker.first_atom + item % worker.atom_count;
        const auto& pass = view.passes[item / worker.atom_count];
        if (worker.slice * kChannelsPerSlice >= uniform(pass.stride)) continue;
        const int components = uniform(pass.in_components), kind = uniform(pass.kind);
        if (components == 1) {
            sum_pass<1, kTiles, ScalarSlots>(view, edges, senders, worker, pass, atom, sums);
        } else if (Most >= 3 && components == 3) {
            if (kind == kLowPass)
                sum_pass<3, kTiles, LowSlots>(view, edges, senders, worker, pass, atom, sums);
            else
                sum_pass<3, kTiles, HighSlots>(view, edges, senders, worker, pass, atom, sums);
        } else if constexpr (Most >= 5) {
            if (kind == kLowPass)
                sum_pass<5, 1, LowSlots>(view, edges, senders, worker, pass, atom, sums);
            else
                sum_pass<5, 1, HighSlots>(view, edges, senders, worker, pass, atom, sums);
        }
    }
}

// ---- reverse ----

// `a` where the bits of `mask` are set, `b` where it is zero. The compiler would make branches of many conditions on the same lane.
__device__ __forceinline__ float choose(unsigned mask, float a, float b) {
    unsigned bits;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(bits) : "r"(mask), "r"(__float_as_uint(a)), "r"(__float_as_uint(b)));
    return __uint_as_float(bits);
}

// Sums over the eight lanes with the same lane % 4, by halving what each still has: lane 4 g + q gets numbers
// g Count / 8 ... (g + 1) Count / 8 - 1, at the beginning.
template <int Half, int Count>
__device__ __forceinline__ void halve(float (&numbers)[Count], unsigned distance) {
    const unsigned upper = threadIdx.x & distance ? 0xffffffffu : 0u;
#pragma unroll
    for (int i = 0; i < Half; ++i) {
        const float mine = choose(upper, numbers[i + Half], numbers[i]), theirs = choose(upper, numbers[i], numbers[i + Half]);
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

// One path for one tile. share_gradient: of the warp, [edge of the tile][most_group_shares], at the path's shares.
template <int Components, int Rows>
__device__ __forceinline__ void reverse_path(const FusedMessages::View& view, int path, int stride, int tile, const float* gradient,
                                             const float (&features)[2][Components][4], float (&features_gradient)[2][Components][4], float (&slope)[2], float* share_gradient) {
    const int lane = static_cast<int>(threadIdx.x % 32), q = lane % 4;
    const int64_t at = int64_t{tile} * kSteps * RadialProduct::kFunctionPlanes * 32 + lane;
    const uint4* const functions[2] = {view.functions + at, view.function_slopes + at};
    float both[2][4][2];
    multiply_functions(view, path, functions, both);
    const float(&radial)[4][2] = both[0], (&radial_slope)[4][2] = both[1];
    float by_sums[Rows][4];
#pragma unroll
    for (int r = 0; r < Rows; ++r) load(gradient + r * stride, by_sums[r]);
    const float* shares = view.shares + (int64_t{tile} * view.share_stride + uniform(view.paths[path].first_share)) * kEdgesPerTile;
    constexpr int kShares = Components * Rows, kPadded = rounded_up(kShares, 8), kKept = kPadded / 8;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const ShareRows<Components, Rows> rows(shares, 2 * q + e);
        float share_sums[kPadded], by_radial[4] = {};
#pragma unroll
        for (int a = 0; a < Components; ++a) {
            float share[Rows], weighed[4];
            rows.load_row(a, share);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                float pulled = 0;
#pragma unroll
                for (int r = 0; r < Rows; ++r) pulled += share[r] * by_sums[r][c];
                by_radial[c] += features[e][a][c] * pulled;
                features_gradient[e][a][c] += radial[c][e] * pulled;
                weighed[c] = radial[c][e] * features[e][a][c];
            }
#pragma unroll
            for (int r = 0; r < Rows; ++r)
                share_sums[a * Rows + r] = weighed[0] * by_sums[r][0] + weighed[1] * by_sums[r][1] + weighed[2] * by_sums[r][2] + weighed[3] * by_sums[r][3];
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) slope[e] += radial_slope[c][e] * by_radial[c];
#pragma unroll
        for (int i = kShares; i < kPadded; ++i) share_sums[i] = 0;
        sum_over_channels(share_sums);
        float* to = share_gradient + (2 * q + e) * view.most_group_shares + lane / 4 * kKept;  // [a][row], dense
#pragma unroll
        for (int i = 0; i < kKept; ++i)
            if (lane / 4 * kKept + i < kShares) to[i] = share_sums[i];
    }
}

template <int Components>
__device__ __forceinline__ void reverse_group(const FusedMessages::View& view, const EdgesView<float>& edges, const RowsView<const float>& senders,
                                              const Worker& worker, int group_index, int64_t atom, const float* sums_gradient) {
    const auto& group = view.groups[group_index];
    const int lane = static_cast<int>(threadIdx.x % 32), q = lane % 4;
    const OwnEdges own(view, edges, atom);
    const bool is_channel = worker.channel < group.stride;
    const int channel = is_channel ? worker.channel : 0;
    float* share_gradients = reinterpret_cast<float*>(shared_memory() + shared_weights_size(view)) + threadIdx.x / 32 * kEdgesPerTile * view.most_group_shares;
    const float* gradient = sums_gradient + atom * view.sums_size + channel;
    const int32_t* sender = edges.sender + view.begin;
    const int first_path = uniform(group.first_path), path_end = first_path + uniform(group.path_count);
#pragma unroll 1
    for (int tile = own.first_tile(); tile < own.tile_end(); ++tile) {
        const int edge = tile * kEdgesPerTile + 2 * q;
        if (tile + 1 < own.tile_end())
            prefetch_tile<Components>(view, sender, senders, tile + 1, own, group.in_offset + worker.slice * kChannelsPerSlice, group.stride, group.first_share,
                                      group.share_count, true);
        float features[2][Components][4], features_gradient[2][Components][4], slope[2];
        load_features(sender, senders, edge, own, group.in_offset + channel, group.stride, features);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            slope[e] = 0;
#pragma unroll
            for (int a = 0; a < Components; ++a)
#pragma unroll
                for (int c = 0; c < 4; ++c) features_gradient[e][a][c] = 0;
        }
#pragma unroll 1
        for (int path = first_path; path < path_end; ++path) {
            const float* rows = gradient + view.paths[path].out_offset;
            float* share_gradient = share_gradients + view.paths[path].first_share - group.first_share;
            switch (uniform(view.paths[path].out_components)) {
                case 1: reverse_path<Components, 1>(view, path, group.stride, tile, rows, features, features_gradient, slope, share_gradient); break;
                case 3: reverse_path<Components, 3>(view, path, group.stride, tile, rows, features, features_gradient, slope, share_gradient); break;
                case 5: reverse_path<Components, 5>(view, path, group.stride, tile, rows, features, features_gradient, slope, share_gradient); break;
                default: reverse_path<Components, 7>(view, path, group.stride, tile, rows, features, features_gradient, slope, share_gradient); break;
            }
        }
        const int slot = worker.slice * view.group_count + group_index;
        const int64_t slots = int64_t{view.slice_count} * view.group_count;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
#pragma unroll
            for (int distance = 4; distance < 32; distance *= 2) slope[e] += __shfl_xor_sync(kAllLanes, slope[e], distance);
            const int64_t local = edge + e;
            const bool is_own = own.has(edge + e);
            if (is_own && lane < 4) view.partials[(local * slots + slot) * view.partial_stride + edges.harmonic_count] = slope[e];
            float* to = view.feature_gradients + local * view.sender_size + group.in_offset + channel;
            if (is_own && is_channel && view.feature_gradients) {
#pragma unroll
                for (int a = 0; a < Components; ++a) store(features_gradient[e][a], to + a * group.stride);
            }
        }
        __syncwarp();
        // A lane has one harmonic of every second edge.
        for (int harmonic = lane % 16; harmonic < edges.harmonic_count; harmonic += 16) {
            const int32_t* term = view.first_harmonic_term + group_index * edges.harmonic_count + harmonic;
            float sums[kEdgesPerTile / 2] = {};
            for (int t = term[0]; t < term[1]; ++t) {
                const auto [index, value] = view.harmonic_terms[t];
#pragma unroll
                for (int e = 0; e < kEdgesPerTile / 2; ++e) sums[e] += value * share_gradients[(2 * e + lane / 16) * view.most_group_shares + index];
            }
#pragma unroll
            for (int e = 0; e < kEdgesPerTile / 2; ++e) {
                const int local = tile * kEdgesPerTile + 2 * e + lane / 16;
                if (own.has(local)) view.partials[(local * slots + slot) * view.partial_stride + harmonic] = sums[e];
            }
        }
        __syncwarp();
    }
}

// Launch: as sum_kernel.
template <int Most>
__global__ void __launch_bounds__(32 * most_warps(Most), 1) reverse_kernel(FusedMessages::View view, EdgesView<float> edges, RowsView<const float> senders,
                                                                     const float* sums_gradient) {
    const Worker worker = start_work(view, edges, view.group_count);
    for (int64_t item = worker.first_item; item < worker.item_count; item += worker.item_stride) {
        const int64_t atom = worker.first_atom + item % worker.atom_count;
        const int group = static_cast<int>(item / worker.atom_count), components = uniform(view.groups[group].in_components);
        if (components == 1)
            reverse_group<1>(view, edges, senders, worker, group, atom, sums_gradient);
        else if (Most >= 3 && components == 3)
            reverse_group<3>(view, edges, senders, worker, group, atom, sums_gradient);
        else if constexpr (Most >= 5)
            reverse_group<5>(view, edges, senders, worker, group, atom, sums_gradient);
    }
}

// Launch: a thread for each edge of the chunk and each of its gradients, which are added up from their parts in a fixed order.
__global__ void __launch_bounds__(kBlockThreads) finish_kernel(FusedMessages::View view, EdgesView<float> edges, const float* densities_gradient,
                                                               EdgeGradientsView<float> gradients, bool accumulate) {
    const int64_t i = int64_t{blockIdx.x} * kBlockThreads + threadIdx.x;
    const int slots = view.slice_count * view.group_count, columns = edges.harmonic_count + 1;
    const int64_t edge = view.begin + i / columns;
    const int column = static_cast<int>(i % columns);
    if (edge >= min(view.end, edges.first[edges.atom_count])) return;
    const float* from = view.partials + (edge - view.begin) * slots * view.partial_stride + column;
    float sum = 0;
    for (int slot = 0; slot < slots; ++slot) sum += from[slot * view.partial_stride];
    if (column < edges.harmonic_count) {
        float* to = gradients.harmonics + edge * edges.harmonic_count + column;
        *to = accumulate ? *to + sum : sum;
        return;
    }
    auto slope = static_cast<double>(sum);
    if (view.density_column >= 0) {
        const int64_t atom = atom_ending_after(edges.first, edges.atom_count, edge);
        const int table = edges.elements[atom] * view.receiver_stride + edges.elements[edges.sender[edge]] * view.sender_stride;
        slope += static_cast<double>(densities_gradient[atom] * cpu::slope_at(view.tables[table].at(edges.distance[edge]), view.density_column));
    }
    gradients.distance[edge] = accumulate ? gradients.distance[edge] + slope : slope;
}

// Launch: a block for each atom. Adds what edges of the chunk that the atom sends have for it: their numbers are gathered first, in order.
__global__ void __launch_bounds__(kBlockThreads) gather_kernel(FusedMessages::View view, EdgesView<float> edges, const int64_t* reverse_edge,
                                                               float* senders_gradient) {
    __shared__ int32_t found[kBlockThreads];
    __shared__ int found_by_warp[kWarps];
    const int64_t atom = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int64_t end = edges.first[atom + 1];
    for (int64_t begin = edges.first[atom]; begin < end; begin += kBlockThreads) {
        const int64_t edge = begin + thread < end ? reverse_edge[begin + thread] : -1;
        const bool is_here = edge >= view.begin && edge < view.end;
        const unsigned here = __ballot_sync(kAllLanes, is_here);
        __syncthreads();
        if (lane == 0) found_by_warp[warp] = __popc(here);
        __syncthreads();
        int place = __popc(here & ((1u << lane) - 1)), count = 0;
        for (int w = 0; w < kWarps; ++w) {
            if (w < warp) place += found_by_warp[w];
            count += found_by_warp[w];
        }
        if (is_here) found[place] = static_cast<int32_t>(edge - view.begin);
        __syncthreads();
        if (count == 0) continue;
        for (int i = 4 * thread; i < view.sender_size; i += 4 * kBlockThreads) {
            float sum[4] = {};
#pragma unroll 4
            for (int f = 0; f < count; ++f) {
                float part[4];
                load(view.feature_gradients + int64_t{found[f]} * view.sender_size + i, part);
#pragma unroll
                for (int c = 0; c < 4; ++c) sum[c] += part[c];
            }
            float* to = senders_gradient + atom * view.sender_size + i;
#pragma unroll
            for (int c = 0; c < 4; ++c) to[c] += sum[c];
        }
    }
}

// Puts paths of one block of features into passes, each time into the kind that takes most of their rows.
void plan_passes(FusedMessages::Pass block, std::vector<std::pair<int, int>> paths_and_rows, std::vector<FusedMessages::Pass>& passes) {
    const std::vector<std::vector<int>> kinds = {{1, 3, 5, 7}, {1, 3, 3, 5}, {5, 7}};
    while (!paths_and_rows.empty()) {
        FusedMessages::Pass best = block;
        int most_rows = 0;
        for (int kind = 0; kind < static_cast<int>(kinds.size()); ++kind) {
            if ((kind == kScalarPass) != (block.in_components == 1)) continue;
            FusedMessages::Pass pass = block;
            pass.kind = kind;
            int rows = 0;
            auto left = paths_and_rows;
            for (size_t slot = 0; slot < kinds[static_cast<size_t>(kind)].size(); ++slot) {
                const auto found = std::find_if(left.begin(), left.end(), [&](const auto& path) { return path.second == kinds[static_cast<size_t>(kind)][slot]; });
                if (found == left.end()) continue;
                pass.paths[slot] = found->first;
                rows += found->second;
                left.erase(found);
            }
            if (rows > most_rows) {
                most_rows = rows;
                best = pass;
            }
        }
        for (int path : best.paths) std::erase_if(paths_and_rows, [&](const auto& left) { return left.first == path; });
        passes.push_back(best);
    }
}

int function_count_of(const Interaction& interaction) {
    const cpu::RadialColumns columns = cpu::columns_of_hidden(interaction);
    return columns.hidden_count + (columns.has_constant ? 1 : 0);
}
size_t weight_bytes_of(size_t path_count) {
    return path_count * static_cast<size_t>(kSteps * RadialProduct::kWeightPlanes * 32) * sizeof(uint4);
}

}  // namespace

bool FusedMessages::can_run(const Interaction& interaction, size_t most_shared) {
    if (!cpu::ends_in_linear_layer(interaction.radial_network) || interaction.edge_input == Interaction::EdgeInput::features) return false;
    if (function_count_of(interaction) > kSteps * kFunctionsPerStep) return false;
    std::vector<int> shares(interaction.convolution.in.blocks().size());
    for (const Convolution::Path& path : interaction.convolution.paths) {
        const int in = interaction.convolution.in[path.in_block].irrep.dimension(), out = interaction.convolution.out[path.out_block].irrep.dimension();
        if (in > 5 || out > 7) return false;
        shares[static_cast<size_t>(path.in_block)] += padded_shares(in, out);
    }
    if (shares.empty()) return false;
    const size_t weights = weight_bytes_of(interaction.convolution.paths.size());
    constexpr size_t kFixed = 1024;  // of every block: what the system and the kernel take for themselves
    const auto scratch = static_cast<size_t>(kEdgesPerTile * *std::max_element(shares.begin(), shares.end())) * sizeof(float);
    return weights + 4 * scratch + kFixed <= most_shared;  // four warps at least
}

FusedMessages::FusedMessages(const cpu::LayerPlan<float>& plan, int harmonic_count, size_t most_shared, bool is_fast, cudaStream_t stream)
    : plan_(plan), harmonic_count_(harmonic_count), most_shared_(most_shared), is_fast_(is_fast), tables_(plan) {
    int device = 0;
    check(cudaGetDevice(&device), "asking for the device");
    check(cudaDeviceGetAttribute(&multiprocessor_count_, cudaDevAttrMultiProcessorCount, device), "asking for the device");
    const Interaction& interaction = plan.layer.interaction;
    std::vector<Pass> passes;
    int most_channels = 0;
    for (size_t block = 0; block < plan.sender_layout.blocks.size(); ++block) {
        const cpu::RowBlock& rows = plan.sender_layout.blocks[block];
        Group group = {rows.offset, rows.components, rows.stride, static_cast<int32_t>(host_paths_.size()), 0, share_stride_, 0};
        std::vector<std::pair<int, int>> paths_and_rows;
        for (size_t p = 0; p < plan.paths.size(); ++p) {
            const cpu::PathPlan<float>& path = plan.paths[p];
            if (interaction.convolution.paths[p].in_block != static_cast<int>(block)) continue;
            paths_and_rows.emplace_back(static_cast<int>(host_paths_.size()), path.out_components);
            path_order_.push_back(static_cast<int>(p));
            host_paths_.push_back({path.out_offset, path.out_components, share_stride_});
            share_stride_ += padded_shares(path.in_components, path.out_components);
            ++group.path_count;
        }
        if (group.path_count == 0) continue;
        group.share_count = share_stride_ - group.first_share;
        most_group_shares_ = std::max(most_group_shares_, group.share_count);
        most_channels = std::max(most_channels, rows.stride);
        host_groups_.push_back(group);
        plan_passes({rows.offset, rows.components, rows.stride, group.first_share, group.share_count, 0, {-1, -1, -1, -1}}, std::move(paths_and_rows), passes);
    }
    slice_count_ = (most_channels + kChannelsPerSlice - 1) / kChannelsPerSlice;
    pass_count_ = static_cast<int>(passes.size());
    upload(paths_, host_paths_, stream);
    upload(passes_, passes, stream);
    upload(groups_, host_groups_, stream);

    const DenseLayer& last = interaction.radial_network.layers.back();
    const auto weight_of = [&](int path, int function, int channel) {
        const Convolution::Path& plain = interaction.convolution.paths[static_cast<size_t>(path_order_[static_cast<size_t>(path)])];
        if (channel >= interaction.convolution.in[plain.in_block].multiplicity || function > last.in_width) return 0.0;
        const auto column = static_cast<size_t>(plain.weight_offset + channel);
        if (function == last.in_width) return last.bias.empty() ? 0.0 : last.activation.factor * last.bias[column];
        return last.activation.factor * last.weight[static_cast<size_t>(function) * static_cast<size_t>(last.out_width) + column];
    };
    double largest = 0;
    for (double weight : last.weight) largest = std::max(largest, std::abs(weight * last.activation.factor));
    for (double weight : last.bias) largest = std::max(largest, std::abs(weight * last.activation.factor));
    constexpr double kLargest = 1 << 12;  // in half precision, with room for its lower half above the smallest number
    if (largest > 0) weight_scale_ = std::exp2(std::floor(std::log2(kLargest / largest)));
    std::vector<uint4> weights;
    constexpr int kPlanes = RadialProduct::kWeightPlanes;
    weights.resize(static_cast<size_t>(slice_count_) * weight_bytes() / sizeof(uint4));
    uint4* to = weights.data();
    for (int slice = 0; slice < slice_count_; ++slice)
        for (int path = 0; path < static_cast<int>(host_paths_.size()); ++path)
            for (int step = 0; step < kSteps; ++step, to += kPlanes * 32)
                for (int lane = 0; lane < 32; ++lane) {
                    float numbers[4][4];
                    for (int i = 0; i < 4; ++i)
                        for (int c = 0; c < 4; ++c)
                            numbers[i][c] = static_cast<float>(weight_scale_ * weight_of(path, step * kFunctionsPerStep + lane % 4 * 4 + i, slice * kChannelsPerSlice + lane / 4 * 4 + c));
                    RadialProduct::store_weights(numbers, to + lane);
                }
    upload(weights_, weights, stream);
    upload_terms(stream);
}

// Shares and the gradients of harmonics carry the inverse of the scales of weights and functions.
void FusedMessages::upload_terms(cudaStream_t stream) {
    const double scale = 1 / (weight_scale_ * function_scale_);
    std::vector<std::vector<Term>> share_terms(static_cast<size_t>(share_stride_)), harmonic_terms(host_groups_.size() * static_cast<size_t>(harmonic_count_));
    for (size_t g = 0; g < host_groups_.size(); ++g)
        for (int path = host_groups_[g].first_path; path < host_groups_[g].first_path + host_groups_[g].path_count; ++path) {
            const int32_t first_share = host_paths_[static_cast<size_t>(path)].first_share;
            for (const auto& coupling : plan_.paths[static_cast<size_t>(path_order_[static_cast<size_t>(path)])].couplings) {
                const auto value = static_cast<float>(scale * static_cast<double>(coupling.value));
                const int rows = host_paths_[static_cast<size_t>(path)].out_components, padded = coupling.share / rows * share_row(rows) + coupling.share % rows;
                share_terms[static_cast<size_t>(first_share + padded)].push_back({coupling.harmonic, value});
                harmonic_terms[g * static_cast<size_t>(harmonic_count_) + static_cast<size_t>(coupling.harmonic)].push_back(
                    {first_share + coupling.share - host_groups_[g].first_share, value});
            }
        }
    const auto flatten = [&](const std::vector<std::vector<Term>>& lists, mlff::cuda::DeviceBuffer<Term>& terms, mlff::cuda::DeviceBuffer<int32_t>& first) {
        std::vector<Term> flat;
        std::vector<int32_t> begin = {0};
        for (const auto& list : lists) {
            flat.insert(flat.end(), list.begin(), list.end());
            begin.push_back(static_cast<int32_t>(flat.size()));
        }
        upload(terms, flat, stream);
        upload(first, begin, stream);
    };
    flatten(share_terms, share_terms_, first_share_term_);
    flatten(harmonic_terms, harmonic_terms_, first_harmonic_term_);
}

void FusedMessages::prepare(cudaStream_t stream) {
    tables_.prepare(stream);
    double largest = 0;
    for (const auto& table : plan_.tables) {
        if (!table) continue;
        const Buffer<float>& host = table->coefficients();
        const auto width = static_cast<size_t>(table->view().column_count);
        for (size_t at = 0; at < host.size(); ++at)  // values, then differences, from which slopes follow
            largest = std::max(largest, std::abs(static_cast<double>(host[at])) * (at / width % 2 == 0 ? 1 : table->view().inverse_step));
    }
    while (largest * function_scale_ > (1 << 15)) function_scale_ /= 2;
    upload_terms(stream);
}

size_t FusedMessages::weight_bytes() const {
    return weight_bytes_of(host_paths_.size());
}

int FusedMessages::warps_per_block(bool is_reverse) const {
    if (!is_reverse) return most_warps(plan_.most_components);
    const int most = most_warps(plan_.most_components);
    const auto scratch = static_cast<size_t>(kEdgesPerTile * most_group_shares_) * sizeof(float);
    return std::min(most, static_cast<int>((most_shared_ - 1024 - weight_bytes()) / scratch));
}

size_t FusedMessages::shared_bytes(bool is_reverse) const {
    const auto scratch = static_cast<size_t>(kEdgesPerTile * most_group_shares_) * sizeof(float);
    return weight_bytes() + (is_reverse ? static_cast<size_t>(warps_per_block(true)) * scratch : 0);
}

int64_t FusedMessages::scratch_bytes_per_edge(bool is_reverse) const {
    const int64_t functions = int64_t{kSteps} * RadialProduct::kFunctionPlanes * 32 * static_cast<int64_t>(sizeof(uint4)) / kEdgesPerTile;
    const int64_t shares = share_stride_ * static_cast<int64_t>(sizeof(float));
    if (!is_reverse) return functions + shares;
    const int64_t partials = int64_t{slice_count_} * static_cast<int64_t>(host_groups_.size()) * rounded_up(harmonic_count_ + 1, 4) * static_cast<int64_t>(sizeof(float));
    return 2 * functions + shares + partials + plan_.sender_layout.size * static_cast<int64_t>(sizeof(float));
}

FusedMessages::View FusedMessages::view() const {
    View view;
    view.paths = paths_.data();
    view.passes = passes_.data();
    view.groups = groups_.data();
    view.weights = weights_.data();
    view.path_count = static_cast<int>(host_paths_.size());
    view.pass_count = pass_count_;
    view.group_count = static_cast<int>(host_groups_.size());
    view.slice_count = slice_count_;
    view.share_stride = share_stride_;
    view.most_group_shares = most_group_shares_;
    view.first_share_term = first_share_term_.data();
    view.share_terms = share_terms_.data();
    view.first_harmonic_term = first_harmonic_term_.data();
    view.harmonic_terms = harmonic_terms_.data();
    view.tables = tables_.views();
    view.receiver_stride = static_cast<int>(plan_.receiver_stride);
    view.sender_stride = static_cast<int>(plan_.sender_stride);
    view.density_column = plan_.columns.density;
    view.sums_size = plan_.sums_layout.size;
    view.sender_size = plan_.sender_layout.size;
    view.function_scale = static_cast<float>(function_scale_);
    view.is_fast = is_fast_;
    view.function_count = cpu::padded(function_count_of(plan_.layer.interaction));
    view.partial_stride = rounded_up(harmonic_count_ + 1, 4);
    return view;
}

// visit(view of the chunk, blocks for its edges by tiles, blocks for its items)
template <class Visit>
void FusedMessages::for_each_chunk(const Scratch& scratch, bool is_reverse, const Visit& visit) const {
    const int64_t most = scratch.bytes / scratch_bytes_per_edge(is_reverse) / kEdgesPerTile * kEdgesPerTile;
    if (most < kEdgesPerTile) fail(Status::internal, "no scratch memory for messages");
    const int64_t capacity = std::max<int64_t>(scratch.edge_capacity, 1);
    const int64_t chunk_count = (capacity + most - 1) / most;
    const int64_t size = ((capacity + chunk_count - 1) / chunk_count + kEdgesPerTile - 1) / kEdgesPerTile * kEdgesPerTile;
    View chunk = view();
    unsigned char* at = scratch.first;
    const auto take = [&](int64_t bytes) { return std::exchange(at, at + bytes); };
    const int64_t function_bytes = size / kEdgesPerTile * kSteps * RadialProduct::kFunctionPlanes * 32 * static_cast<int64_t>(sizeof(uint4));
    chunk.functions = reinterpret_cast<uint4*>(take(function_bytes));
    if (is_reverse) chunk.function_slopes = reinterpret_cast<uint4*>(take(function_bytes));
    chunk.shares = reinterpret_cast<float*>(take(size * share_stride_ * static_cast<int64_t>(sizeof(float))));
    if (is_reverse) {
        chunk.partials = reinterpret_cast<float*>(take(size * chunk.slice_count * chunk.group_count * chunk.partial_stride * static_cast<int64_t>(sizeof(float))));
        chunk.feature_gradients = reinterpret_cast<float*>(take(size * chunk.sender_size * static_cast<int64_t>(sizeof(float))));
    }
    for (int64_t c = 0; c < chunk_count; ++c) {
        chunk.begin = c * size;
        chunk.end = chunk.begin + size;
        chunk.is_last = c + 1 == chunk_count;
        visit(chunk, (size / kEdgesPerTile + kWarps - 1) / kWarps);
    }
}

void FusedMessages::compute(const EdgesView<float>& edges, RowsView<const float> senders, float* sums, float* densities, const Scratch& scratch,
                                  cudaStream_t stream) const {
    if (edges.atom_count == 0) return;
    const int64_t atom_blocks = (edges.atom_count + kWarps - 1) / kWarps;
    if (plan_.columns.density >= 0)
        launch("summing densities", sum_densities, atom_blocks, kBlockThreads, stream, view(), edges, densities);
    else
        check(cudaMemsetAsync(densities, 0, static_cast<size_t>(edges.atom_count) * sizeof(float), stream), "clearing memory");
    const auto kernel = plan_.most_components <= 1 ? sum_kernel<1> : plan_.most_components <= 3 ? sum_kernel<3> : sum_kernel<5>;
    const int warps = warps_per_block(false);
    const int64_t blocks = std::clamp<int64_t>((int64_t{edges.atom_count} * pass_count_ + warps - 1) / warps, 1, std::max(1, multiprocessor_count_ / slice_count_));
    const LaunchShape shape = {dim3(static_cast<unsigned>(blocks * slice_count_)), 32 * warps, shared_bytes(false)};
    for_each_chunk(scratch, false, [&](const View& chunk, int64_t tile_blocks) {
        launch("preparing edges", prepare_kernel<false>, tile_blocks, kBlockThreads, stream, chunk, edges);
        launch("summing messages", kernel, shape, stream, chunk, edges, senders, sums);
    });
}

void FusedMessages::reverse(const EdgesView<float>& edges, const int64_t* reverse_edge, RowsView<const float> senders, const float* sums_gradient,
                                  const float* densities_gradient, const EdgeGradientsView<float>& gradients, bool accumulate, float* senders_gradient,
                                  const Scratch& scratch, cudaStream_t stream) const {
    if (edges.atom_count == 0) return;
    const auto kernel = plan_.most_components <= 1 ? reverse_kernel<1> : plan_.most_components <= 3 ? reverse_kernel<3> : reverse_kernel<5>;
    const int warps = warps_per_block(true);
    const int64_t blocks =
        std::clamp<int64_t>((int64_t{edges.atom_count} * static_cast<int64_t>(host_groups_.size()) + warps - 1) / warps, 1, std::max(1, multiprocessor_count_ / slice_count_));
    const LaunchShape shape = {dim3(static_cast<unsigned>(blocks * slice_count_)), 32 * warps, shared_bytes(true)};
    for_each_chunk(scratch, true, [&](View chunk, int64_t tile_blocks) {
        if (!senders_gradient) chunk.feature_gradients = nullptr;
        launch("preparing edges", prepare_kernel<true>, tile_blocks, kBlockThreads, stream, chunk, edges);
        launch("reversing messages", kernel, shape, stream, chunk, edges, senders, sums_gradient);
        launch("gradients of edges", finish_kernel, (std::min(chunk.end - chunk.begin, scratch.edge_capacity) * (harmonic_count_ + 1) + kBlockThreads - 1) / kBlockThreads,
               kBlockThreads, stream, chunk, edges, densities_gradient, gradients, accumulate);
        if (senders_gradient) launch("gradients of senders", gather_kernel, int64_t{edges.atom_count}, kBlockThreads, stream, chunk, edges, reverse_edge, senders_gradient);
    });
}

}  // namespace mlff::mace::cuda
