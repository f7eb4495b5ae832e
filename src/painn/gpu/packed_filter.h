// SPDX-License-Identifier: MIT
// Filters on tensor cores: weights and functions of edges in the order in which lanes load them, and their product. For
// CUDA sources only.
//
// Functions are taken in steps of 16, as in RadialProduct. The rest, if any, is a half step of 8. There lane 4 g + q
// holds functions 2 q and 2 q + 1 of the step: their values for edge g, and their weights for channels 4 g ... 4 g + 3.
//
// `fast` has the high halves only, in the same order: half of the bytes, and one product instead of three.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/engine/radial_product.h"
#include "gpu/engine/stored_number.h"

namespace mlff::painn::gpu {

// What lanes load: planes of 16 bytes for each lane of the weights of 32 channels of one part, and functions. A half
// step is as many planes as two groups of 4 functions of FunctionLayout, which are a half of a step.
template <class Stored>
struct FilterLayout;
template <>
struct FilterLayout<float> {
    using StepFunctions = uint4;
    using HalfFunctions = uint2;
    static constexpr int kStepPlanes = mlff::gpu::RadialProduct::kWeightPlanes;
};
template <>
struct FilterLayout<__half> {
    using StepFunctions = uint2;
    using HalfFunctions = uint32_t;
    static constexpr int kStepPlanes = FilterLayout<float>::kStepPlanes / 2;
};
template <class Stored>
inline constexpr int kHalfStepPlanes = FilterLayout<Stored>::kStepPlanes / 2;
template <class Stored>
inline constexpr int kUnitsPerStep = 32 * FilterLayout<Stored>::kStepPlanes;
template <class Stored>
inline constexpr int kUnitsPerGroup = kUnitsPerStep<Stored> / 4;

// Filters have three parts.
enum FilterPart { kPartS, kPartV, kPartU };
inline constexpr int kFilterParts = 3;

// Stores a group of a step: high and low halves of four numbers.
__device__ inline void store_step(const float (&numbers)[4], uint4* to) {
    mlff::gpu::RadialProduct::store_functions(numbers, to);
}
// Stores a group of a half step, which two lanes load.
__device__ inline void store_half_step(const float (&numbers)[4], uint4* to) {
    using P = mlff::gpu::RadialProduct;
    *to = make_uint4(P::high_pair(numbers[0], numbers[1]), P::high_pair(P::rest(numbers[0]), P::rest(numbers[1])),
                     P::high_pair(numbers[2], numbers[3]), P::high_pair(P::rest(numbers[2]), P::rest(numbers[3])));
}

// The halves of a stored group: pair 0 has its functions 0 and 1, pair 1 has 2 and 3.
struct GroupHalves {
    uint32_t high[2], low[2];

    // Group number `group` of `group_count`.
    __device__ __forceinline__ GroupHalves(const uint4& bits, int group, int group_count) {
        const bool is_step = group < group_count / 4 * 4;
        high[0] = bits.x;
        high[1] = is_step ? bits.y : bits.z;
        low[0] = is_step ? bits.z : bits.y;
        low[1] = bits.w;
    }
};

// FilterView<float>::weights from filter_table(), whose functions are padded to half steps. `columns` is 3 F.
inline std::vector<uint4> pack_filter(const std::vector<double>& table, int columns, float scale) {
    using namespace mlff::gpu;
    using P = RadialProduct;
    const int width = columns / kFilterParts, groups = static_cast<int>(table.size()) / columns / 4,
              slices = width / kChannelsPerSlice;
    const auto weight = [&](int function, int column) {
        return scale *
               static_cast<float>(
                   table[static_cast<size_t>(function) * static_cast<size_t>(columns) + static_cast<size_t>(column)]);
    };
    std::vector<uint4> packed(static_cast<size_t>(slices * kFilterParts * groups * kUnitsPerGroup<float>));
    uint4* to = packed.data();
    for (int slice = 0; slice < slices; ++slice)
        for (int part = 0; part < kFilterParts; ++part) {
            const int first_column = part * width + kChannelsPerSlice * slice;
            for (int step = 0; step < groups / 4; ++step, to += kUnitsPerStep<float>)
                for (int lane = 0; lane < 32; ++lane) {
                    float numbers[4][4];
                    for (int i = 0; i < 4; ++i)
                        for (int c = 0; c < 4; ++c)
                            numbers[i][c] = weight(kFunctionsPerStep * step + 4 * (lane % 4) + i,
                                                   first_column + 4 * (lane / 4) + c);
                    P::store_weights(numbers, to + lane);
                }
            if (groups % 4 == 0) continue;
            for (int tile = 0; tile < 2; ++tile, to += 32)
                for (int lane = 0; lane < 32; ++lane) {
                    const int function = kFunctionsPerStep * (groups / 4) + 2 * (lane % 4),
                              column = first_column + 4 * (lane / 4) + 2 * tile;
                    const float a = weight(function, column), b = weight(function + 1, column),
                                c = weight(function, column + 1), d = weight(function + 1, column + 1);
                    to[lane] = make_uint4(P::high_pair(a, b), P::high_pair(c, d), P::high_pair(P::rest(a), P::rest(b)),
                                          P::high_pair(P::rest(c), P::rest(d)));
                }
        }
    return packed;
}
// FilterView<__half>::weights from those of FilterView<float>, for `groups` groups of functions.
inline std::vector<uint4> high_halves_of_filter(const std::vector<uint4>& packed, int groups) {
    std::vector<uint4> high;
    for (size_t at = 0; at < packed.size();) {
        for (int step = 0; step < groups / 4; ++step, at += kUnitsPerStep<float>)
            for (const size_t plane : {0, 2})
                for (size_t lane = 0; lane < 32; ++lane) high.push_back(packed[at + 32 * plane + lane]);
        if (groups % 4 == 0) continue;
        for (size_t lane = 0; lane < 32; ++lane) {
            const uint4 &first = packed[at + lane], &second = packed[at + 32 + lane];  // the tiles
            high.push_back(make_uint4(first.x, first.y, second.x, second.y));
        }
        at += 2 * kUnitsPerGroup<float>;
    }
    return high;
}

// Add one step, or a half step, to products[channel][edge]. `weights` are the units of this lane.
__device__ __forceinline__ void add_step(const uint4 (&weights)[4], const uint4& functions, float (&products)[4][2]) {
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
        const uint4 &high = weights[2 * tile], &low = weights[2 * tile + 1];
        mlff::gpu::mma_f16(products[2 * tile], products[2 * tile + 1], low, functions.x, functions.y);
        mlff::gpu::mma_f16(products[2 * tile], products[2 * tile + 1], high, functions.z, functions.w);
        mlff::gpu::mma_f16(products[2 * tile], products[2 * tile + 1], high, functions.x, functions.y);
    }
}
__device__ __forceinline__ void add_half_step(const uint4 (&weights)[2], const uint2& functions,
                                              float (&products)[4][2]) {
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
        const uint4& both = weights[tile];
        mlff::gpu::mma_f16(products[2 * tile], products[2 * tile + 1], both.z, both.w, functions.x);
        mlff::gpu::mma_f16(products[2 * tile], products[2 * tile + 1], both.x, both.y, functions.y);
        mlff::gpu::mma_f16(products[2 * tile], products[2 * tile + 1], both.x, both.y, functions.x);
    }
}

__device__ __forceinline__ void add_step(const uint4 (&weights)[2], const uint2& functions, float (&products)[4][2]) {
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
        mlff::gpu::mma_f16(products[2 * tile], products[2 * tile + 1], weights[tile], functions.x, functions.y);
}
__device__ __forceinline__ void add_half_step(const uint4 (&weights)[1], uint32_t functions, float (&products)[4][2]) {
    const uint4& both = weights[0];
    mlff::gpu::mma_f16(products[0], products[1], both.x, both.y, functions);
    mlff::gpu::mma_f16(products[2], products[3], both.z, both.w, functions);
}

// A filter whose weights stay in registers: those of a slice of 32 channels for all functions. For 17 to 24 functions.
template <class StoredIn>
class ResidentFilter {
public:
    using Stored = StoredIn;
    using Layout = FilterLayout<Stored>;
    using Group = typename Layout::StepFunctions;
    static constexpr int kGroups = 6;  // of 4 functions
    struct Operand {
        typename Layout::StepFunctions step;
        typename Layout::HalfFunctions half;
    };
    // `weights` are those of the slice.
    __device__ __forceinline__ ResidentFilter(const uint4* weights, int lane, int /*group_count*/) {
#pragma unroll
        for (int part = 0; part < kFilterParts; ++part) {
            const uint4* from = weights + part * (kGroups * kUnitsPerGroup<Stored>)+lane;
#pragma unroll
            for (int plane = 0; plane < Layout::kStepPlanes; ++plane)
                step_[part][plane] = mlff::gpu::load_bytes(from + 32 * plane);
#pragma unroll
            for (int plane = 0; plane < kHalfStepPlanes<Stored>; ++plane)
                half_[part][plane] = mlff::gpu::load_bytes(from + kUnitsPerStep<Stored> + 32 * plane);
        }
    }
    // `functions` are those of an edge. Returns zeros if `is_there` is false.
    __device__ __forceinline__ Operand load(const Group* functions, int q, bool is_there) const {
        if (!is_there) return {};
        return {__ldg(functions + q),
                __ldg(reinterpret_cast<const typename Layout::HalfFunctions*>(functions + 4) + q)};
    }
    __device__ __forceinline__ void multiply(int part, const Operand& functions, float (&products)[4][2]) const {
#pragma unroll
        for (int c = 0; c < 4; ++c) products[c][0] = products[c][1] = 0;
        add_step(step_[part], functions.step, products);
        add_half_step(half_[part], functions.half, products);
    }

private:
    uint4 step_[kFilterParts][Layout::kStepPlanes], half_[kFilterParts][kHalfStepPlanes<Stored>];
};

// A filter with any number of functions: the weights are read again for every eight edges.
template <class StoredIn>
class StreamedFilter {
public:
    using Stored = StoredIn;
    using Layout = FilterLayout<Stored>;
    using Group = typename Layout::StepFunctions;
    struct Operand {
        const Group* functions;
        int q;
        bool is_there;
    };
    __device__ __forceinline__ StreamedFilter(const uint4* weights, int lane, int group_count)
        : group_count_(group_count) {
#pragma unroll
        for (int part = 0; part < kFilterParts; ++part)
            from_[part] = weights + part * group_count * kUnitsPerGroup<Stored> + lane;
    }
    __device__ __forceinline__ Operand load(const Group* functions, int q, bool is_there) const {
        return {functions, q, is_there};
    }
    __device__ __forceinline__ void multiply(int part, const Operand& functions, float (&products)[4][2]) const {
#pragma unroll
        for (int c = 0; c < 4; ++c) products[c][0] = products[c][1] = 0;
        const int steps = group_count_ / 4;
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            uint4 weights[Layout::kStepPlanes];
            load_planes(from_[part] + step * kUnitsPerStep<Stored>, weights);
            add_step(weights, functions.is_there ? __ldg(functions.functions + 4 * step + functions.q) : Group{},
                     products);
        }
        if (group_count_ % 4 == 0) return;
        using HalfFunctions = typename Layout::HalfFunctions;
        uint4 weights[kHalfStepPlanes<Stored>];
        load_planes(from_[part] + steps * kUnitsPerStep<Stored>, weights);
        add_half_step(weights,
                      functions.is_there
                          ? __ldg(reinterpret_cast<const HalfFunctions*>(functions.functions + 4 * steps) + functions.q)
                          : HalfFunctions{},
                      products);
    }

private:
    template <int Planes>
    __device__ __forceinline__ static void load_planes(const uint4* from, uint4 (&weights)[Planes]) {
#pragma unroll
        for (int plane = 0; plane < Planes; ++plane) weights[plane] = from[32 * plane];
    }

    const uint4* from_[kFilterParts];
    int group_count_;
};

}  // namespace mlff::painn::gpu
