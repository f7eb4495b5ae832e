// SPDX-License-Identifier: MIT
// Messages in single precision, their filters on tensor cores. Per edge and block these are 3 F (R + 1) products, for which there is no time beside the
// gather of what neighbours have; tables would be larger than what is gathered.
//
// A warp has one atom and a slice of 32 channels, and takes 16 of the atom's edges at a time, two tiles of 8. Lane 4 g + q gets the filter for its 4
// channels 4 g ... 4 g + 3 and edges 2 q and 2 q + 1 of each tile, so that 8 lanes read a whole line of a neighbour's row, and sums over its own edges.
#include <algorithm>

#include "cuda_engine/radial_product.h"
#include "cuda_engine/warp.h"
#include "device/cuda_check.h"
#include "painn/cuda/messages.h"
#include "painn/cuda/packed_filter.h"
#include "painn/cuda/sizes.h"

namespace mlff::painn::cuda {
namespace {

using namespace mlff::cuda;

constexpr int kTiles = 2, kEdgesAtOnce = kTiles * kEdgesPerTile;

// The warps of a block: slices of channels, times groups that share the edges of an atom. Where an atom has one warp, a block has several atoms.
template <int Width, int Groups>
struct Shape {
    static constexpr int kSlices = Width / kChannelsPerSlice, kGroups = Groups, kWarpsPerAtom = kSlices * kGroups;
    static constexpr int kAtoms = kWarpsPerAtom == 1 ? 4 : 1;
    static constexpr int kThreads = 32 * kWarpsPerAtom * kAtoms;
};

struct alignas(16) Four {
    float of[4];
};
__device__ __forceinline__ Four load_four(const float* from) { return *reinterpret_cast<const Four*>(from); }
__device__ __forceinline__ void store_four(float* to, const Four& numbers) { *reinterpret_cast<Four*>(to) = numbers; }

template <class S>
struct Place {
    int lane, g, q, slice, group, atom_of_block;
    int64_t atom;
    int channel;

    __device__ Place() {
        const int warp = static_cast<int>(threadIdx.x / 32);
        lane = static_cast<int>(threadIdx.x % 32);
        g = lane / 4;
        q = lane % 4;
        slice = warp % S::kSlices;
        group = warp / S::kSlices % S::kGroups;
        atom_of_block = warp / S::kWarpsPerAtom;
        atom = blockIdx.x * int64_t{S::kAtoms} + atom_of_block;
        channel = kChannelsPerSlice * slice + 4 * g;
    }
};

// Waits for all warps of the atom.
template <class S>
__device__ __forceinline__ void meet() {
    if constexpr (S::kWarpsPerAtom == 1)
        __syncwarp();
    else
        __syncthreads();
}

// The edges of an atom, numbered from 0.
struct AtomEdges {
    int count;
    const int32_t* sender;
    const float* direction;           // [edge][4]
    const uint4 *value, *slope;       // [edge][group_count]
    double* vector_gradient;          // [edge][3]

    __device__ AtomEdges(const StepEdges& edges, const EdgeFunctions<float>& functions, double* vector_gradient_in, int64_t atom) {
        const int64_t begin = edges.first[atom];
        count = static_cast<int>(edges.first[atom + 1] - begin);
        sender = edges.sender + begin;
        direction = functions.direction + 4 * begin;
        value = functions.value + begin * functions.group_count;
        slope = functions.slope + begin * functions.group_count;
        vector_gradient = vector_gradient_in + 3 * begin;
    }
};

// 16 of them from `first` on; those from `count` on do not count: their functions are zero.
struct EdgeTiles {
    int offset[kTiles];     // of the functions that this lane holds for the product: 4 of each step of one edge
    bool is_there[kTiles];  // that edge
    int own[kTiles][2];     // the edges whose products the lane gets, those beyond the last taken to be the last
    int steps;

    __device__ EdgeTiles(int first, int count, int group_count, int g, int q) : steps(group_count / 4) {
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
            const int edge = first + kEdgesPerTile * t + g;
            is_there[t] = edge < count;
            offset[t] = min(edge, count - 1) * group_count + q;
#pragma unroll
            for (int j = 0; j < 2; ++j) own[t][j] = min(first + kEdgesPerTile * t + 2 * q + j, count - 1);
        }
    }
    // products[tile][channel][edge] of one part, for functions or their slopes. `weights`: of the part, at this lane.
    __device__ __forceinline__ void multiply(const uint4* functions_of_edges, const uint4* weights, bool is_fast, float (&products)[kTiles][4][2]) const {
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
#pragma unroll
            for (int c = 0; c < 4; ++c) products[t][c][0] = products[t][c][1] = 0;
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            RadialProduct::Functions operands[kTiles];
#pragma unroll
            for (int t = 0; t < kTiles; ++t) {
                operands[t] = {make_uint4(0, 0, 0, 0)};
                if (is_there[t]) operands[t] = RadialProduct::load_functions(functions_of_edges + offset[t] + 4 * step);
            }
            RadialProduct::add(weights + step * kUnitsPerStep, operands, is_fast, products);
        }
    }
};

__device__ __forceinline__ float sum_over_own_edges(float value) {  // over q
    value += __shfl_xor_sync(kAllLanes, value, 1);
    return value + __shfl_xor_sync(kAllLanes, value, 2);
}

// action(tile, edge of the lane in it)
template <class Action>
__device__ __forceinline__ void for_edges(const Action& action) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int j = 0; j < 2; ++j) action(t, j);
}

template <int Width, int Groups, bool IsFirst>
__global__ void __launch_bounds__(Shape<Width, Groups>::kThreads, 512 / Shape<Width, Groups>::kThreads) sum_kernel(const __grid_constant__ MessageStage<float> stage) {
    mlff::cuda::await_predecessor();
    using S = Shape<Width, Groups>;
    __shared__ Four room[S::kGroups > 1 ? S::kGroups - 1 : 1][S::kSlices][32];
    const Place<S> place;
    if (place.atom >= stage.edges.atom_count) return;  // not where warps of an atom meet: there a block has one atom
    const AtomEdges edges(stage.edges, stage.functions, nullptr, place.atom);
    const int part_units = stage.functions.group_count / 4 * kUnitsPerStep;
    const uint4* weights = stage.filter.weights + place.slice * 3 * part_units + place.lane;
    float scalar[4] = {}, vector[3][4] = {};
    for (int first = kEdgesAtOnce * place.group; first < edges.count; first += kEdgesAtOnce * S::kGroups) {
        const EdgeTiles tiles(first, edges.count, stage.functions.group_count, place.g, place.q);
        const float* from[kTiles][2];
        for_edges([&](int t, int j) {
            const int32_t sender = edges.sender[tiles.own[t][j]];
            from[t][j] = stage.sent + (IsFirst ? int64_t{stage.edges.elements[sender]} * (kFirstRows * Width) : int64_t{sender} * (kSentRows * Width)) + place.channel;
        });
        float filter[kTiles][4][2];
        {
            Four sent[kTiles][2];
            for_edges([&](int t, int j) { sent[t][j] = load_four(from[t][j]); });
            tiles.multiply(edges.value, weights, stage.filter.is_fast, filter);
            for_edges([&](int t, int j) {
#pragma unroll
                for (int c = 0; c < 4; ++c) scalar[c] += filter[t][c][j] * sent[t][j].of[c];
            });
        }
        {
            Four sent[kTiles][2], direction[kTiles][2];
            for_edges([&](int t, int j) {
                sent[t][j] = load_four(from[t][j] + Width);
                direction[t][j] = load_four(edges.direction + 4 * tiles.own[t][j]);
            });
            tiles.multiply(edges.value, weights + 2 * part_units, stage.filter.is_fast, filter);
            for_edges([&](int t, int j) {
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const float along = filter[t][c][j] * sent[t][j].of[c];
#pragma unroll
                    for (int k = 0; k < 3; ++k) vector[k][c] += along * direction[t][j].of[k];
                }
            });
        }
        if constexpr (!IsFirst) {
            Four sent[kTiles][2][3];
            for_edges([&](int t, int j) {
#pragma unroll
                for (int k = 0; k < 3; ++k) sent[t][j][k] = load_four(from[t][j] + (2 + k) * Width);
            });
            tiles.multiply(edges.value, weights + part_units, stage.filter.is_fast, filter);
            for_edges([&](int t, int j) {
#pragma unroll
                for (int k = 0; k < 3; ++k)
#pragma unroll
                    for (int c = 0; c < 4; ++c) vector[k][c] += filter[t][c][j] * sent[t][j][k].of[c];
            });
        }
    }
    // Lane q takes row q of s, v_x, v_y, v_z.
    Four total;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const float rows[4] = {sum_over_own_edges(scalar[c]), sum_over_own_edges(vector[0][c]), sum_over_own_edges(vector[1][c]), sum_over_own_edges(vector[2][c])};
        total.of[c] = place.q == 0 ? rows[0] : place.q == 1 ? rows[1] : place.q == 2 ? rows[2] : rows[3];
    }
    if constexpr (S::kGroups > 1) {
        if (place.group > 0) room[place.group - 1][place.slice][place.lane] = total;
        __syncthreads();
        if (place.group > 0) return;
#pragma unroll
        for (int other = 0; other < S::kGroups - 1; ++other) {
            const Four more = room[other][place.slice][place.lane];
#pragma unroll
            for (int c = 0; c < 4; ++c) total.of[c] += more.of[c];
        }
    }
    const float unscale = 1 / (stage.filter.scale * kValueScale);
    const int64_t vector_at = (3 * place.atom + place.q - 1) * Width + place.channel;
    Four before = {};
    if (place.q == 0)
        before = load_four(stage.scalars + (IsFirst ? int64_t{stage.edges.elements[place.atom]} : place.atom) * Width + place.channel);
    else if (!IsFirst)
        before = load_four(stage.vectors + vector_at);
#pragma unroll
    for (int c = 0; c < 4; ++c) before.of[c] += unscale * total.of[c];
    store_four(place.q == 0 ? stage.new_scalars + place.atom * Width + place.channel : stage.new_vectors + vector_at, before);
}

// Edges whose gradients are summed over slices together.
constexpr int kChunk = 64;

// Sums over the lanes of all g: those of number i of `sums` go to the lanes with g = i / 2, which return numbers 2 g and 2 g + 1.
__device__ __forceinline__ float2 sum_over_channels(float (&sums)[16], int lane) {
#pragma unroll
    for (int have = 8, distance = 16; distance >= 4; have /= 2, distance /= 2) {
        const bool is_upper = (lane & distance) != 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            if (i >= have) break;
            const float kept = is_upper ? sums[i + have] : sums[i], given = is_upper ? sums[i] : sums[i + have];
            sums[i] = kept + __shfl_xor_sync(kAllLanes, given, distance);
        }
    }
    return make_float2(sums[0], sums[1]);
}

template <int Width, int Groups, bool IsFirst>
__global__ void __launch_bounds__(Shape<Width, Groups>::kThreads, std::max(1, 384 / Shape<Width, Groups>::kThreads)) reverse_kernel(const __grid_constant__ MessageReverse<float> stage) {
    mlff::cuda::await_predecessor();
    using S = Shape<Width, Groups>;
    constexpr int kOwnRows = IsFirst ? kGradientRows : kSentRows;
    // [edge][dE/d(distance), dE/d(direction)] of each slice
    __shared__ Four partial[S::kAtoms][S::kSlices][kChunk];
    __shared__ Four room[S::kGroups > 1 ? S::kGroups - 1 : 1][S::kSlices][5][8];
    const Place<S> place;
    if (place.atom >= stage.edges.atom_count) return;
    const AtomEdges edges(stage.edges, stage.functions, stage.vector_gradient, place.atom);
    const int part_units = stage.functions.group_count / 4 * kUnitsPerStep;
    const uint4* weights = stage.filter.weights + place.slice * 3 * part_units + place.lane;
    const float unscale = 1 / (stage.filter.scale * kValueScale), unscale_slope = 1 / stage.filter.scale;
    const bool is_fast = stage.filter.is_fast;

    // Of this atom: what it sent or, in the first block, the gradient of what it received.
    Four own[kOwnRows];
#pragma unroll
    for (int row = 0; row < kOwnRows; ++row) own[row] = load_four((IsFirst ? stage.gradient : stage.sent) + (place.atom * kOwnRows + row) * Width + place.channel);
    float phi_s_gradient[4] = {}, phi_u_gradient[4] = {}, sent_gradient[3][4] = {};

    for (int chunk = 0; chunk < edges.count; chunk += kChunk) {
        const int chunk_end = min(chunk + kChunk, edges.count);
        for (int first = chunk + kEdgesAtOnce * place.group; first < chunk_end; first += kEdgesAtOnce * S::kGroups) {
            const EdgeTiles tiles(first, edges.count, stage.functions.group_count, place.g, place.q);
            const float* from[kTiles][2];
            for_edges([&](int t, int j) {
                const int32_t neighbor = edges.sender[tiles.own[t][j]];
                from[t][j] = (IsFirst ? stage.sent + int64_t{stage.edges.elements[neighbor]} * (kFirstRows * Width) : stage.gradient + int64_t{neighbor} * (kGradientRows * Width)) +
                             place.channel;
            });
            float sums[16] = {};  // [tile][edge][by distance, turn x, y, z]
            float filter[kTiles][4][2], slope[kTiles][4][2];
            {  // s
                Four other[kTiles][2];
                for_edges([&](int t, int j) { other[t][j] = load_four(from[t][j]); });
                tiles.multiply(edges.slope, weights, is_fast, slope);
                for_edges([&](int t, int j) {
#pragma unroll
                    for (int c = 0; c < 4; ++c) sums[8 * t + 4 * j] += own[0].of[c] * other[t][j].of[c] * slope[t][c][j];
                });
                if constexpr (!IsFirst) {
                    tiles.multiply(edges.value, weights, is_fast, filter);
                    for_edges([&](int t, int j) {
#pragma unroll
                        for (int c = 0; c < 4; ++c) phi_s_gradient[c] += filter[t][c][j] * other[t][j].of[c];
                    });
                }
            }
            // dE/dv of the edge's receiver, and phi_u of its sender; one of them is of this atom.
            Four other[kTiles][2][IsFirst ? 1 : 3], direction[kTiles][2];
            for_edges([&](int t, int j) {
#pragma unroll
                for (int k = 0; k < (IsFirst ? 1 : 3); ++k) other[t][j][k] = load_four(from[t][j] + (1 + k) * Width);
                direction[t][j] = load_four(edges.direction + 4 * tiles.own[t][j]);
            });
            tiles.multiply(edges.value, weights + 2 * part_units, is_fast, filter);
            tiles.multiply(edges.slope, weights + 2 * part_units, is_fast, slope);
            for_edges([&](int t, int j) {
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const float phi_u = IsFirst ? other[t][j][0].of[c] : own[1].of[c];
                    float gradient[3], along = 0;
#pragma unroll
                    for (int k = 0; k < 3; ++k) {
                        gradient[k] = IsFirst ? own[1 + k].of[c] : other[t][j][IsFirst ? 0 : k].of[c];
                        along += direction[t][j].of[k] * gradient[k];
                    }
                    if (!IsFirst) along = -along;  // the edge that carries the message has the opposite direction
                    sums[8 * t + 4 * j] += phi_u * along * slope[t][c][j];
                    const float turn = phi_u * filter[t][c][j];
#pragma unroll
                    for (int k = 0; k < 3; ++k) sums[8 * t + 4 * j + 1 + k] += turn * gradient[k];
                    phi_u_gradient[c] += filter[t][c][j] * along;
                }
            });
            if constexpr (!IsFirst) {  // v
                tiles.multiply(edges.value, weights + part_units, is_fast, filter);
                tiles.multiply(edges.slope, weights + part_units, is_fast, slope);
                for_edges([&](int t, int j) {
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        float product = 0;
#pragma unroll
                        for (int k = 0; k < 3; ++k) {
                            product += own[2 + k].of[c] * other[t][j][k].of[c];
                            sent_gradient[k][c] += filter[t][c][j] * other[t][j][k].of[c];
                        }
                        sums[8 * t + 4 * j] += product * slope[t][c][j];
                    }
                });
            }
            // Now [edge g / 2 of the lane's four][numbers 2 (g % 2) and 2 (g % 2) + 1]
            const float2 two = sum_over_channels(sums, place.lane);
            const int in_chunk = first - chunk + kEdgesPerTile * (place.g / 4) + 2 * place.q + place.g / 2 % 2;
            *reinterpret_cast<float2*>(&partial[place.atom_of_block][place.slice][in_chunk].of[2 * (place.g % 2)]) = two;
        }
        meet<S>();
        const int thread_of_atom = static_cast<int>(threadIdx.x) % (32 * S::kWarpsPerAtom);
        for (int i = thread_of_atom; i < 3 * (chunk_end - chunk); i += 32 * S::kWarpsPerAtom) {
            const int e = i / 3, k = i % 3;
            Four sum = {};
#pragma unroll
            for (int slice = 0; slice < S::kSlices; ++slice) {
                const Four more = partial[place.atom_of_block][slice][e];
#pragma unroll
                for (int c = 0; c < 4; ++c) sum.of[c] += more.of[c];
            }
            const Four direction = load_four(edges.direction + 4 * (chunk + e));
            const float radial = sum.of[1] * direction.of[0] + sum.of[2] * direction.of[1] + sum.of[3] * direction.of[2];
            const float own_turn = k == 0 ? sum.of[1] : k == 1 ? sum.of[2] : sum.of[3];
            const float own_direction = k == 0 ? direction.of[0] : k == 1 ? direction.of[1] : direction.of[2];
            const float across = unscale * (own_turn - radial * own_direction) * direction.of[3];
            edges.vector_gradient[3 * (chunk + e) + k] += static_cast<double>(unscale_slope * sum.of[0] * own_direction + (IsFirst ? across : -across));
        }
        meet<S>();
    }
    if constexpr (!IsFirst) {
        Four totals[5];  // of phi_s, phi_u, phi_v v
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            totals[0].of[c] = sum_over_own_edges(phi_s_gradient[c]);
            totals[1].of[c] = sum_over_own_edges(phi_u_gradient[c]);
#pragma unroll
            for (int k = 0; k < 3; ++k) totals[2 + k].of[c] = sum_over_own_edges(sent_gradient[k][c]);
        }
        if constexpr (S::kGroups > 1) {
            if (place.group > 0 && place.q == 0)
#pragma unroll
                for (int row = 0; row < 5; ++row) room[place.group - 1][place.slice][row][place.g] = totals[row];
            __syncthreads();
            if (place.group > 0) return;
#pragma unroll
            for (int other = 0; other < S::kGroups - 1; ++other)
#pragma unroll
                for (int row = 0; row < 5; ++row)
#pragma unroll
                    for (int c = 0; c < 4; ++c) totals[row].of[c] += room[other][place.slice][row][place.g].of[c];
        }
        // Lane q writes part q of the gradient of phi, and component q of that of the vectors.
        if (place.q == 3) return;
        const Four phi_v = load_four(stage.phi_v + place.atom * Width + place.channel);
        Four of_phi = {};
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const Four vector = load_four(stage.vectors + (3 * place.atom + k) * Width + place.channel);
#pragma unroll
            for (int c = 0; c < 4; ++c) of_phi.of[c] += totals[2 + k].of[c] * vector.of[c];
        }
        Four of_vector = load_four(stage.gradient + (kGradientRows * place.atom + 1 + place.q) * Width + place.channel);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            of_phi.of[c] = unscale * (place.q == 0 ? totals[0].of[c] : place.q == 1 ? of_phi.of[c] : totals[1].of[c]);
            of_vector.of[c] += unscale * (place.q == 0 ? totals[2].of[c] : place.q == 1 ? totals[3].of[c] : totals[4].of[c]) * phi_v.of[c];
        }
        store_four(stage.phi_gradient + (3 * place.atom + place.q) * Width + place.channel, of_phi);
        store_four(stage.vectors_gradient + (3 * place.atom + place.q) * Width + place.channel, of_vector);
    }
}

template <class S, class Stage>
void launch_shape(const char* doing, void (*first)(Stage), void (*other)(Stage), const Stage& stage, cudaStream_t stream) {
    launch(doing, stage.is_first ? first : other, (int64_t{stage.edges.atom_count} + S::kAtoms - 1) / S::kAtoms, S::kThreads, stream, stage);
}

// With few atoms several warps share the edges of each.
template <int Width>
inline constexpr int kForwardGroups = std::min(4, 512 / Width);
template <int Width>
inline constexpr int kReverseGroups = std::min(4, 256 / Width);

template <int Width>
void sum_messages_of_width(const MessageStage<float>& stage, cudaStream_t stream) {
    constexpr int kGroups = kForwardGroups<Width>;
    if (stage.edges.atom_count <= few_atoms_for_messages())
        launch_shape<Shape<Width, kGroups>>("messages", sum_kernel<Width, kGroups, true>, sum_kernel<Width, kGroups, false>, stage, stream);
    else
        launch_shape<Shape<Width, 1>>("messages", sum_kernel<Width, 1, true>, sum_kernel<Width, 1, false>, stage, stream);
}
template <int Width>
void reverse_messages_of_width(const MessageReverse<float>& stage, cudaStream_t stream) {
    constexpr int kGroups = kReverseGroups<Width>;
    if (stage.edges.atom_count <= few_atoms_for_messages())
        launch_shape<Shape<Width, kGroups>>("reversing messages", reverse_kernel<Width, kGroups, true>, reverse_kernel<Width, kGroups, false>, stage, stream);
    else
        launch_shape<Shape<Width, 1>>("reversing messages", reverse_kernel<Width, 1, true>, reverse_kernel<Width, 1, false>, stage, stream);
}

}  // namespace

void sum_messages(int width, const MessageStage<float>& stage, cudaStream_t stream) {
    if (stage.edges.atom_count == 0) return;
    switch (width) {
        case 32: return sum_messages_of_width<32>(stage, stream);
        case 64: return sum_messages_of_width<64>(stage, stream);
        case 128: return sum_messages_of_width<128>(stage, stream);
        case 256: return sum_messages_of_width<256>(stage, stream);
        default: fail(Status::internal, "no messages of width ", width);
    }
}
void reverse_messages(int width, const MessageReverse<float>& stage, cudaStream_t stream) {
    if (stage.edges.atom_count == 0) return;
    switch (width) {
        case 32: return reverse_messages_of_width<32>(stage, stream);
        case 64: return reverse_messages_of_width<64>(stage, stream);
        case 128: return reverse_messages_of_width<128>(stage, stream);
        case 256: return reverse_messages_of_width<256>(stage, stream);
        default: fail(Status::internal, "no messages of width ", width);
    }
}

}  // namespace mlff::painn::cuda
