// SPDX-License-Identifier: MIT
// Messages in single precision, and in `fast`, with filters on tensor cores. An edge needs 3 F (R + 1) products per
// block. Without tensor cores these would take too long compared with the gather of features, and tables would be more
// data than what is gathered.
//
// A warp has a slice of 32 channels, and keeps their weights in registers. It goes over the edges of one atom after the
// other, eight at a time. Lane 4 g + q gets the filter of channels 4 g ... 4 g + 3 for edges 2 q and 2 q + 1 of the
// eight, and sums over its own edges.
//
// On an H200 the forward sums are limited by look-ups of cache lines in the first-level cache, one per cycle: 8 lanes
// that load together have 4 edges. A layout of 16 edges and 16 channels per warp has half the look-ups, but twice the
// instructions, and is slower. Rows of halves have half the look-ups: 16 lanes load together.
#include <algorithm>

#include "gpu/engine/four.h"
#include "gpu/engine/product_lane.h"
#include "gpu/engine/warp.h"
#include "gpu/runtime/cuda_check.h"
#include "painn/gpu/edge_gradient.h"
#include "painn/gpu/messages.h"
#include "painn/gpu/packed_filter.h"
#include "painn/gpu/sizes.h"
#include "painn/gpu/widths.h"

namespace mlff::painn::gpu {
namespace {

using namespace mlff::gpu;

// Blocks of 128 threads on a multiprocessor: as many as there are registers for, with few bytes spilled.
struct BlocksTogether {
    int forward, reverse;
};
template <class Stored>
inline constexpr BlocksTogether kBlocks = kIsFast<Stored> ? BlocksTogether{4, 3} : BlocksTogether{3, 2};

// How warps divide the work. A block has all slices of the channels of an atom. If atoms are few, it has several groups
// of warps, which divide the edges; if they are many, it goes through several atoms. To sum the messages of many atoms,
// a block instead has one slice, and its warps have consecutive atoms, which have neighbours in common.
template <int Width, int Groups, bool IsOneSlice>
struct Shape {
    static constexpr int kWidth = Width, kSlices = Width / kChannelsPerSlice, kGroups = Groups;
    static constexpr bool kIsOneSlice = IsOneSlice;
    static constexpr int kWarps = IsOneSlice ? 4 : kSlices * kGroups;
    static constexpr int kThreads = 32 * kWarps;
    static constexpr int kBlocksTogether = IsOneSlice ? kSlices : 1;  // blocks that have the same atoms
    static constexpr int kAtomsAtOnce = IsOneSlice ? kWarps : 1;      // atoms that these blocks have at a time
    static_assert(!IsOneSlice || Groups == 1);
};

// A warp's slice of the channels, of which a lane has four, and its part of the atoms and edges.
template <class S>
struct SlicePlace : ProductLane {
    int slice, group, channel;
    int64_t first_atom, atom_stride;

    __device__ SlicePlace() {
        slice = S::kIsOneSlice ? static_cast<int>(blockIdx.x) % S::kSlices : warp % S::kSlices;
        group = S::kIsOneSlice ? 0 : warp / S::kSlices;
        first_atom = blockIdx.x / S::kBlocksTogether * int64_t{S::kAtomsAtOnce} + (S::kIsOneSlice ? warp : 0);
        atom_stride = gridDim.x / S::kBlocksTogether * int64_t{S::kAtomsAtOnce};
        channel = kChannelsPerSlice * slice + 4 * g;
    }
};

// Visits the atoms of a warp. Blocks with one slice take runs of consecutive atoms in turn: neighbours that these have
// in common are then in the first-level cache. Runs are shorter where long ones would leave blocks without work. Other
// blocks take single atoms in turn: runs are no gain there.
template <class S, class Visit>
__device__ __forceinline__ void for_each_atom(const SlicePlace<S>& place, int64_t atom_count, const Visit& visit) {
    if constexpr (!S::kIsOneSlice) {
        for (int64_t atom = place.first_atom; atom < atom_count; atom += place.atom_stride) visit(atom);
        return;
    }
    constexpr int kLongest = 8, kRunsPerBlock = 4;  // a run is so many times the atoms that blocks have at a time
    const int64_t length = min(max(atom_count / (kRunsPerBlock * place.atom_stride), int64_t{1}), int64_t{kLongest});
    for (int64_t first = place.first_atom - place.warp; first * length < atom_count; first += place.atom_stride)
        for (int i = 0; i < length; ++i) {
            const int64_t atom = first * length + i * S::kAtomsAtOnce + place.warp;
            if (atom < atom_count) visit(atom);
        }
}

__device__ __forceinline__ float sum_over_own_edges(float value) {  // sums over q
    value += __shfl_xor_sync(kAllLanes, value, 1);
    return value + __shfl_xor_sync(kAllLanes, value, 2);
}

// Loads the weights of a warp's slice.
template <class Filter, class S>
__device__ __forceinline__ Filter load_filter(const SlicePlace<S>& place,
                                              const FilterView<typename Filter::Stored>& filter, int group_count) {
    return {filter.weights + place.slice * kFilterParts * group_count * kUnitsPerGroup<typename Filter::Stored>,
            place.lane, group_count};
}

// What a lane gathers for its two edges of a tile: features of the neighbours, [atom][Rows][F], and directions. Edges
// beyond the last repeat the last one; their functions are zero.
template <int Rows, class Stored>
struct GatheredEdges {
    Four<Stored> rows[2][Rows];
    Four<float> direction[2];

    template <class S>
    __device__ __forceinline__ GatheredEdges(const SlicePlace<S>& place, const StepEdges& edges,
                                             const EdgeFunctions<Stored>& functions, const Stored* rows_of_all,
                                             int64_t begin, int first, int count) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int64_t edge = begin + min(first + 2 * place.q + j, count - 1);
            const int32_t neighbor = edges.sender[edge];
            const Stored* from = rows_of_all + int64_t{neighbor} * (Rows * S::kWidth) + place.channel;
#pragma unroll
            for (int row = 0; row < Rows; ++row) rows[j][row] = load_four(from + row * S::kWidth);
            direction[j] = load_four(functions.direction + 4 * edge);
        }
    }
};

// ---- forward ----

// Sums over a lane's edges, for its channels.
struct ReceivedSums {
    float scalar[4] = {}, vector[3][4] = {};
};

// Adds the messages of a lane's two edges.
template <class Filter>
__device__ __forceinline__ void add_messages(const Filter& weights, const typename Filter::Operand& functions,
                                             const GatheredEdges<kSentRows, typename Filter::Stored>& edges,
                                             ReceivedSums& sums) {
    float filter[4][2];
    weights.multiply(kPartS, functions, filter);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const Four<float> row = widen(edges.rows[j][0]);
#pragma unroll
        for (int c = 0; c < 4; ++c) sums.scalar[c] += filter[c][j] * row.of[c];
    }
    weights.multiply(kPartU, functions, filter);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const Four<float> row = widen(edges.rows[j][1]);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const float along = filter[c][j] * row.of[c];
#pragma unroll
            for (int k = 0; k < 3; ++k) sums.vector[k][c] += along * edges.direction[j].of[k];
        }
    }
    weights.multiply(kPartV, functions, filter);
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const Four<float> row = widen(edges.rows[j][2 + k]);
#pragma unroll
            for (int c = 0; c < 4; ++c) sums.vector[k][c] += filter[c][j] * row.of[c];
        }
}

// Sums over the lanes of all q. Lane q gets row q of s, v_x, v_y, v_z.
__device__ __forceinline__ Four<float> total_of_row(const ReceivedSums& sums, int q) {
    Four<float> total;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const float rows[4] = {sum_over_own_edges(sums.scalar[c]), sum_over_own_edges(sums.vector[0][c]),
                               sum_over_own_edges(sums.vector[1][c]), sum_over_own_edges(sums.vector[2][c])};
        total.of[c] = q == 0 ? rows[0] : q == 1 ? rows[1] : q == 2 ? rows[2] : rows[3];
    }
    return total;
}

template <class S, class Filter>
__global__ void __launch_bounds__(S::kThreads, S::kThreads <= 128 ? kBlocks<typename Filter::Stored>.forward : 1)
    sum_kernel(const __grid_constant__ MessageStage<typename Filter::Stored> stage) {
    using Stored = typename Filter::Stored;
    constexpr int Width = S::kWidth;
    __shared__ Four<float> room[S::kGroups > 1 ? S::kGroups - 1 : 1][S::kSlices][32];
    const SlicePlace<S> place;
    const int group_count = stage.functions.group_count;
    const Filter weights = load_filter<Filter>(place, stage.filter, group_count);
    await_predecessor();
    for_each_atom(place, stage.edges.atom_count, [&](int64_t atom) {
        const int64_t begin = stage.edges.first[atom];
        const int count = static_cast<int>(stage.edges.first[atom + 1] - begin);
        ReceivedSums sums;
        for (int first = kEdgesPerTile * place.group; first < count; first += kEdgesPerTile * S::kGroups) {
            const GatheredEdges<kSentRows, Stored> edges(place, stage.edges, stage.functions, stage.sent, begin, first,
                                                         count);
            const int own = first + place.g;
            const auto functions =
                weights.load(stage.functions.value + (begin + min(own, count - 1)) * group_count, place.q, own < count);
            add_messages(weights, functions, edges, sums);
        }
        Four<float> total = total_of_row(sums, place.q);
        if constexpr (S::kGroups > 1) {  // here a block has one atom
            if (place.group > 0) room[place.group - 1][place.slice][place.lane] = total;
            __syncthreads();
            if (place.group > 0) return;
#pragma unroll
            for (int other = 0; other < S::kGroups - 1; ++other) {
                const Four<float> more = room[other][place.slice][place.lane];
#pragma unroll
                for (int c = 0; c < 4; ++c) total.of[c] += more.of[c];
            }
        }
        const float unscale = 1 / (stage.filter.scale * kValueScale);
        const int64_t vector_at = (3 * atom + place.q - 1) * Width + place.channel;
        Four<float> before =
            load_four(place.q == 0 ? stage.scalars + atom * Width + place.channel : stage.vectors + vector_at);
#pragma unroll
        for (int c = 0; c < 4; ++c) before.of[c] += unscale * total.of[c];
        store_four(place.q == 0 ? stage.new_scalars + atom * Width + place.channel : stage.new_vectors + vector_at,
                   before);
    });
}

// ---- reverse ----

// Number of edges whose gradients are summed over slices at a time.
constexpr int kChunk = 64;

// The inverse of the scales of weights and functions.
struct Unscale {
    float value, slope;

    __device__ __forceinline__ explicit Unscale(float filter_scale)
        : value(1 / (filter_scale * kValueScale)), slope(1 / filter_scale) {}
};

// The filters of a tile of edges, and their slopes.
template <class Weights>
struct TileFilter {
    using Stored = typename Weights::Stored;
    const Weights& weights;
    typename Weights::Operand values, slopes;

    __device__ __forceinline__ void multiply_values(FilterPart part, float (&filter)[4][2]) const {
        weights.multiply(part, values, filter);
    }
    __device__ __forceinline__ void multiply_slopes(FilterPart part, float (&slope)[4][2]) const {
        weights.multiply(part, slopes, slope);
    }
};

// Gradients of what the atom has sent: sums over a lane's edges, for its channels.
struct SentGradients {
    float phi_s[4] = {}, phi_u[4] = {}, vectors[3][4] = {};
};

// [edge][dE/d(distance), dE/d(direction)] of a lane's two edges, summed over its channels.
using EdgeSums = float[8];

// The next three functions each add the contribution of one part of the filter to the gradients of a lane's two edges
// and of what the atom has sent. `own` is what the atom sent, and `edges` has the gradients of what the neighbours
// received.
template <class Weights>
__device__ __forceinline__ void reverse_part_s(const TileFilter<Weights>& tile,
                                               const Four<typename Weights::Stored> (&own_rows)[kSentRows],
                                               const GatheredEdges<kGradientRows, typename Weights::Stored>& edges,
                                               EdgeSums& sums, SentGradients& sent) {
    float filter[4][2], slope[4][2];
    tile.multiply_slopes(kPartS, slope);
    tile.multiply_values(kPartS, filter);
    const Four<float> own = widen(own_rows[0]);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const Four<float> row = widen(edges.rows[j][0]);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            sums[4 * j] += own.of[c] * row.of[c] * slope[c][j];
            sent.phi_s[c] += filter[c][j] * row.of[c];
        }
    }
}
template <class Weights>
__device__ __forceinline__ void reverse_part_u(const TileFilter<Weights>& tile,
                                               const Four<typename Weights::Stored> (&own_rows)[kSentRows],
                                               const GatheredEdges<kGradientRows, typename Weights::Stored>& edges,
                                               EdgeSums& sums, SentGradients& sent) {
    float filter[4][2], slope[4][2];
    tile.multiply_values(kPartU, filter);
    tile.multiply_slopes(kPartU, slope);
    const Four<float> own = widen(own_rows[1]);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const Four<float> rows[3] = {widen(edges.rows[j][1]), widen(edges.rows[j][2]), widen(edges.rows[j][3])};
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            float along = 0;  // the message goes along the reverse edge, which has the opposite direction
#pragma unroll
            for (int k = 0; k < 3; ++k) along -= edges.direction[j].of[k] * rows[k].of[c];
            sums[4 * j] += own.of[c] * along * slope[c][j];
            const float turn = own.of[c] * filter[c][j];
#pragma unroll
            for (int k = 0; k < 3; ++k) sums[4 * j + 1 + k] += turn * rows[k].of[c];
            sent.phi_u[c] += filter[c][j] * along;
        }
    }
}
template <class Weights>
__device__ __forceinline__ void reverse_part_v(const TileFilter<Weights>& tile,
                                               const Four<typename Weights::Stored> (&own_rows)[kSentRows],
                                               const GatheredEdges<kGradientRows, typename Weights::Stored>& edges,
                                               EdgeSums& sums, SentGradients& sent) {
    float filter[4][2], slope[4][2];
    tile.multiply_values(kPartV, filter);
    tile.multiply_slopes(kPartV, slope);
    const Four<float> own[3] = {widen(own_rows[2]), widen(own_rows[3]), widen(own_rows[4])};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        const Four<float> rows[3] = {widen(edges.rows[j][1]), widen(edges.rows[j][2]), widen(edges.rows[j][3])};
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            float product = 0;
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                product += own[k].of[c] * rows[k].of[c];
                sent.vectors[k][c] += filter[c][j] * rows[k].of[c];
            }
            sums[4 * j] += product * slope[c][j];
        }
    }
}

// Sums over the lanes of all g. Returns the sum of number g of `sums`.
__device__ __forceinline__ float sum_over_channels(EdgeSums& sums, int lane) {
#pragma unroll
    for (int have = 4, distance = 16; distance >= 4; have /= 2, distance /= 2) {
        const bool is_upper = (lane & distance) != 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i >= have) break;
            const float kept = is_upper ? sums[i + have] : sums[i], given = is_upper ? sums[i] : sums[i + have];
            sums[i] = kept + __shfl_xor_sync(kAllLanes, given, distance);
        }
    }
    return sums[0];
}

// Adds up the gradients of all slices for `count` edges from `first` on, and converts them to gradients by edge
// vectors. All threads call it; each takes components of edges in turn.
template <class S, class Stored>
__device__ __forceinline__ void write_edge_gradients(const MessageReverse<Stored>& stage, const Unscale& unscale,
                                                     const Four<float> (&partial)[S::kSlices][kChunk], int64_t first,
                                                     int count) {
    for (int i = static_cast<int>(threadIdx.x); i < 3 * count; i += S::kThreads) {
        const int e = i / 3, k = i % 3;
        Four<float> sum = {};
#pragma unroll
        for (int slice = 0; slice < S::kSlices; ++slice) {
            const Four<float> more = partial[slice][e];
#pragma unroll
            for (int c = 0; c < 4; ++c) sum.of[c] += more.of[c];
        }
        const int64_t edge = first + e;
        const Four<float> direction = load_four(stage.functions.direction + 4 * edge);
        const EdgeComponent<float> own(direction, sum.of[1], sum.of[2], sum.of[3], k);
        const float across = unscale.value * own.across * direction.of[3];
        stage.vector_gradient[3 * edge + k] += static_cast<double>(unscale.slope * sum.of[0] * own.direction - across);
    }
}

// Gradients of phi_s, phi_u and phi_v v, summed over the edges of all lanes.
struct SentTotals {
    Four<float> of[kSentRows];

    __device__ __forceinline__ explicit SentTotals(const SentGradients& sent) {
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            of[0].of[c] = sum_over_own_edges(sent.phi_s[c]);
            of[1].of[c] = sum_over_own_edges(sent.phi_u[c]);
#pragma unroll
            for (int k = 0; k < 3; ++k) of[2 + k].of[c] = sum_over_own_edges(sent.vectors[k][c]);
        }
    }
};

// Lane q writes part q of the gradient of phi, and component q of that of the vectors.
template <class S, class Stored>
__device__ __forceinline__ void write_atom_gradients(const MessageReverse<Stored>& stage, const SlicePlace<S>& place,
                                                     int64_t atom, float unscale, const SentTotals& totals) {
    constexpr int Width = S::kWidth;
    if (place.q == 3) return;
    const Four<float> phi_v = load_four(stage.phi_v + atom * Width + place.channel);
    Four<float> of_phi = {};
#pragma unroll
    for (int k = 0; k < 3; ++k) {
        const Four<float> vector = load_four(stage.vectors + (3 * atom + k) * Width + place.channel);
#pragma unroll
        for (int c = 0; c < 4; ++c) of_phi.of[c] += totals.of[2 + k].of[c] * vector.of[c];
    }
    Four<float> of_vector = load_four(stage.gradient + (kGradientRows * atom + 1 + place.q) * Width + place.channel);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        of_phi.of[c] = unscale * (place.q == 0 ? totals.of[0].of[c] : place.q == 1 ? of_phi.of[c] : totals.of[1].of[c]);
        of_vector.of[c] += unscale *
                           (place.q == 0   ? totals.of[2].of[c]
                            : place.q == 1 ? totals.of[3].of[c]
                                           : totals.of[4].of[c]) *
                           phi_v.of[c];
    }
    store_four(stage.phi_gradient + (3 * atom + place.q) * Width + place.channel, of_phi);
    store_four(stage.vectors_gradient + (3 * atom + place.q) * Width + place.channel, of_vector);
}

template <class S, class Filter>
__global__ void __launch_bounds__(S::kThreads, S::kThreads <= 128 ? kBlocks<typename Filter::Stored>.reverse : 1)
    reverse_kernel(const __grid_constant__ MessageReverse<typename Filter::Stored> stage) {
    using Stored = typename Filter::Stored;
    // [edge][dE/d(distance), dE/d(direction)] of each slice
    __shared__ Four<float> partial[S::kSlices][kChunk];
    __shared__ Four<float> room[S::kGroups > 1 ? S::kGroups - 1 : 1][S::kSlices][kSentRows][8];
    const SlicePlace<S> place;
    const int group_count = stage.functions.group_count;
    const Filter weights = load_filter<Filter>(place, stage.filter, group_count);
    const Unscale unscale(stage.filter.scale);
    await_predecessor();
    for (int64_t atom = place.first_atom; atom < stage.edges.atom_count; atom += place.atom_stride) {
        const int64_t begin = stage.edges.first[atom];
        const int count = static_cast<int>(stage.edges.first[atom + 1] - begin);
        Four<Stored> own[kSentRows];
#pragma unroll
        for (int row = 0; row < kSentRows; ++row)
            own[row] = load_four(stage.sent + (atom * kSentRows + row) * S::kWidth + place.channel);
        SentGradients sent;
        for (int chunk = 0; chunk < count; chunk += kChunk) {
            const int chunk_end = min(chunk + kChunk, count);
            for (int first = chunk + kEdgesPerTile * place.group; first < chunk_end;
                 first += kEdgesPerTile * S::kGroups) {
                const GatheredEdges<kGradientRows, Stored> edges(place, stage.edges, stage.functions, stage.gathered,
                                                                 begin, first, count);
                const int own_edge = first + place.g;
                const int64_t functions_at = (begin + min(own_edge, count - 1)) * group_count;
                const TileFilter<Filter> tile = {
                    weights, weights.load(stage.functions.value + functions_at, place.q, own_edge < count),
                    weights.load(stage.functions.slope + functions_at, place.q, own_edge < count)};
                EdgeSums sums = {};
                reverse_part_s(tile, own, edges, sums, sent);
                reverse_part_u(tile, own, edges, sums, sent);
                reverse_part_v(tile, own, edges, sums, sent);
                partial[place.slice][first - chunk + 2 * place.q + place.g / 4].of[place.g % 4] =
                    sum_over_channels(sums, place.lane);
            }
            __syncthreads();
            write_edge_gradients<S>(stage, unscale, partial, begin + chunk, chunk_end - chunk);
            __syncthreads();
        }
        SentTotals totals(sent);
        if constexpr (S::kGroups > 1) {  // here a block has one atom
            if (place.group > 0 && place.q == 0)
#pragma unroll
                for (int row = 0; row < kSentRows; ++row)
                    room[place.group - 1][place.slice][row][place.g] = totals.of[row];
            __syncthreads();
            if (place.group > 0) return;
#pragma unroll
            for (int other = 0; other < S::kGroups - 1; ++other)
#pragma unroll
                for (int row = 0; row < kSentRows; ++row)
#pragma unroll
                    for (int c = 0; c < 4; ++c) totals.of[row].of[c] += room[other][place.slice][row][place.g].of[c];
        }
        write_atom_gradients(stage, place, atom, unscale.value, totals);
    }
}

// As many blocks as there is work for, but no more than run at the same time.
template <class S, class Stage>
void launch_shape(const char* doing, void (*kernel)(Stage), const Stage& stage, cudaStream_t stream) {
    int64_t sets = (int64_t{stage.edges.atom_count} + S::kAtomsAtOnce - 1) / S::kAtomsAtOnce;
    if constexpr (S::kGroups == 1) {
        int device = 0, multiprocessors = 0, blocks = 0;
        check(cudaGetDevice(&device), doing);
        check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), doing);
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, S::kThreads, 0), doing);
        sets =
            std::min(sets, std::max(int64_t{1}, int64_t{multiprocessors} * std::max(1, blocks) / S::kBlocksTogether));
    }
    launch(doing, kernel, sets * S::kBlocksTogether, S::kThreads, stream, stage);
}

// With few atoms, several warps divide the edges of each atom: as many as there are registers for.
template <int Width>
inline constexpr int kForwardGroups = std::min(3, 512 / Width);
template <int Width>
inline constexpr int kReverseGroups = std::min(4, 256 / Width);

template <int Width, class Filter>
void sum_messages_with(const MessageStage<typename Filter::Stored>& stage, cudaStream_t stream) {
    using Few = Shape<Width, kForwardGroups<Width>, false>;
    using Many = Shape<Width, 1, true>;
    if (stage.edges.atom_count <= few_atoms_for_messages())
        launch_shape<Few>("messages", sum_kernel<Few, Filter>, stage, stream);
    else
        launch_shape<Many>("messages", sum_kernel<Many, Filter>, stage, stream);
}
template <int Width, class Filter>
void reverse_messages_with(const MessageReverse<typename Filter::Stored>& stage, cudaStream_t stream) {
    using Few = Shape<Width, kReverseGroups<Width>, false>;
    using Many = Shape<Width, 1, false>;
    if (stage.edges.atom_count <= few_atoms_for_messages())
        launch_shape<Few>("reversing messages", reverse_kernel<Few, Filter>, stage, stream);
    else
        launch_shape<Many>("reversing messages", reverse_kernel<Many, Filter>, stage, stream);
}

template <class Stored>
void sum_stored(int width, const MessageStage<Stored>& stage, cudaStream_t stream) {
    if (stage.edges.atom_count == 0) return;
    with_width(width, [&](auto F) {
        stage.functions.group_count == ResidentFilter<Stored>::kGroups
            ? sum_messages_with<F, ResidentFilter<Stored>>(stage, stream)
            : sum_messages_with<F, StreamedFilter<Stored>>(stage, stream);
    });
}
template <class Stored>
void reverse_stored(int width, const MessageReverse<Stored>& stage, cudaStream_t stream) {
    if (stage.edges.atom_count == 0) return;
    with_width(width, [&](auto F) {
        stage.functions.group_count == ResidentFilter<Stored>::kGroups
            ? reverse_messages_with<F, ResidentFilter<Stored>>(stage, stream)
            : reverse_messages_with<F, StreamedFilter<Stored>>(stage, stream);
    });
}

}  // namespace

void sum_messages(int width, const MessageStage<float>& stage, cudaStream_t stream) {
    sum_stored(width, stage, stream);
}
void sum_messages(int width, const MessageStage<__half>& stage, cudaStream_t stream) {
    sum_stored(width, stage, stream);
}
void reverse_messages(int width, const MessageReverse<float>& stage, cudaStream_t stream) {
    reverse_stored(width, stage, stream);
}
void reverse_messages(int width, const MessageReverse<__half>& stage, cudaStream_t stream) {
    reverse_stored(width, stage, stream);
}

}  // namespace mlff::painn::gpu
