// SPDX-License-Identifier: MIT
// Products of rows and a matrix on tensor cores. A warp multiplies 16 rows by 32 columns, in steps of 64 bytes of every
// row.
//
// In single precision every number is split into two TF32 numbers, high and low, and the product low times low is left
// out. Tensor cores do not round to nearest when they add, so they only add the products of one step, and steps are
// added outside of them. The error is that of single precision. Double precision has its own instructions.
//
// Lane 4 g + q holds 16 bytes of rows g and g + 8: the kCount numbers of the step from kCount q on (kCount is that of
// Pack). It holds as many numbers of one column of each of four tiles of the matrix, which is stored in the order in
// which lanes load it. It gets the sums of rows g and g + 8 for columns 4 q ... 4 q + 3 of every 16.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/engine/instructions.h"

namespace mlff::gpu {

inline constexpr int kProductRows = 16, kProductColumns = 32;
inline constexpr int kColumnTiles = kProductColumns / 8;
inline constexpr int kStepBytes = 64;

// What a lane loads in one instruction. load_pack() is volatile: see load_bytes().
template <class Real>
struct alignas(16) Pack {
    static constexpr int kCount = 16 / static_cast<int>(sizeof(Real));
    Real of[kCount];
};

template <class Real>
inline constexpr int kStep = kStepBytes / static_cast<int>(sizeof(Real));

// Where the number at `depth` of a step and `column` is stored, in units of Real. The number of columns is rounded up
// to a multiple of kProductColumns.
template <class Real>
constexpr int64_t packed_index(int depth, int column) {
    const int within = column % 16;
    const int tile = column / 16 * 2 + within / 2 % 2, column_of_tile = within / 4 * 2 + within % 2;
    const int lane = 4 * column_of_tile + depth / Pack<Real>::kCount;
    return (int64_t{tile} * 32 + lane) * Pack<Real>::kCount + depth % Pack<Real>::kCount;
}

__device__ __forceinline__ Pack<float> load_pack(const float* from) {
    const uint4 bytes = load_bytes(from);
    return {{__uint_as_float(bytes.x), __uint_as_float(bytes.y), __uint_as_float(bytes.z), __uint_as_float(bytes.w)}};
}
__device__ __forceinline__ Pack<double> load_pack(const double* from) {
    Pack<double> pack;
    load_two(from, pack.of[0], pack.of[1]);
    return pack;
}

// sum[tile][i] is that of row g + 8 (i / 2) and column 16 (tile / 2) + 4 q + 2 (tile % 2) + i % 2.
template <class Real>
using ProductSum = Real[kColumnTiles][4];

// Products also exist for a depth of kShortDepth, where a lane holds two numbers of each row and column (ShortOperand).
// In single precision this is half a step, in double precision a whole one.
inline constexpr int kShortDepth = 8;

template <class Real>
struct TensorProduct;

// Each number is high + low. `high` is a TF32 number; tensor cores ignore at most the last bit of `low`.
template <int Count>
struct SplitNumbers {
    uint32_t high[Count], low[Count];
};

template <>
struct TensorProduct<float> {
    using Operand = SplitNumbers<Pack<float>::kCount>;
    using ShortOperand = SplitNumbers<2>;
    template <int Count>
    __device__ __forceinline__ static SplitNumbers<Count> split(const float (&numbers)[Count]) {
        SplitNumbers<Count> operand;
#pragma unroll
        for (int i = 0; i < Count; ++i) {
            operand.high[i] = (__float_as_uint(numbers[i]) + 0x1000u) & 0xffffe000u;
            operand.low[i] = __float_as_uint(numbers[i] - __uint_as_float(operand.high[i]));
        }
        return operand;
    }
    __device__ __forceinline__ static Operand split(const Pack<float>& numbers) { return split(numbers.of); }
    // Multiplies numbers 2 half and 2 half + 1 of each lane.
    template <int Count>
    __device__ __forceinline__ static void multiply(const uint32_t (&top)[Count], const uint32_t (&bottom)[Count],
                                                    const uint32_t (&column)[Count], int half, float (&sum)[4]) {
        mma_tf32(sum, top[2 * half], bottom[2 * half], top[2 * half + 1], bottom[2 * half + 1], column[2 * half],
                 column[2 * half + 1]);
    }
    // Adds to `step` on the tensor cores.
    template <int Tiles, int Count>
    __device__ __forceinline__ static void add_to_step(const SplitNumbers<Count>& top,
                                                       const SplitNumbers<Count>& bottom,
                                                       const SplitNumbers<Count> (&columns)[Tiles],
                                                       float (&step)[Tiles][4]) {
#pragma unroll
        for (int half = 0; half < Count / 2; ++half) {
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile)
                multiply(top.low, bottom.low, columns[tile].high, half, step[tile]);
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile)
                multiply(top.high, bottom.high, columns[tile].low, half, step[tile]);
        }
#pragma unroll
        for (int half = 0; half < Count / 2; ++half)
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile)
                multiply(top.high, bottom.high, columns[tile].high, half, step[tile]);
    }
    template <int Tiles, int Count>
    __device__ __forceinline__ static void add(const SplitNumbers<Count>& top, const SplitNumbers<Count>& bottom,
                                               const SplitNumbers<Count> (&columns)[Tiles], float (&sum)[Tiles][4]) {
        float step[Tiles][4] = {};
        add_to_step(top, bottom, columns, step);
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile)
#pragma unroll
            for (int i = 0; i < 4; ++i) sum[tile][i] += step[tile][i];
    }
    // Like add(), but only two products in a row depend on each other instead of six. This is faster for a warp that
    // has few tiles and runs alone, and needs more registers.
    template <int Tiles, int Count>
    __device__ __forceinline__ static void add_abreast(const SplitNumbers<Count>& top,
                                                       const SplitNumbers<Count>& bottom,
                                                       const SplitNumbers<Count> (&columns)[Tiles],
                                                       float (&sum)[Tiles][4]) {
        float step[3][Tiles][4] = {};
#pragma unroll
        for (int half = 0; half < Count / 2; ++half)
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
                multiply(top.low, bottom.low, columns[tile].high, half, step[0][tile]);
                multiply(top.high, bottom.high, columns[tile].low, half, step[1][tile]);
                multiply(top.high, bottom.high, columns[tile].high, half, step[2][tile]);
            }
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile)
#pragma unroll
            for (int i = 0; i < 4; ++i) sum[tile][i] += (step[0][tile][i] + step[1][tile][i]) + step[2][tile][i];
    }
};

template <>
struct TensorProduct<double> {
    using Operand = Pack<double>;
    using ShortOperand = Operand;
    __device__ __forceinline__ static Operand split(const double (&numbers)[2]) { return {{numbers[0], numbers[1]}}; }
    __device__ __forceinline__ static Operand split(const Pack<double>& numbers) { return numbers; }
    template <int Tiles>
    __device__ __forceinline__ static void add(const Operand& top, const Operand& bottom,
                                               const Operand (&columns)[Tiles], double (&sum)[Tiles][4]) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int tile = 0; tile < Tiles; ++tile) {
                mma_f64(sum[tile][0], sum[tile][1], top.of[half], columns[tile].of[half]);
                mma_f64(sum[tile][2], sum[tile][3], bottom.of[half], columns[tile].of[half]);
            }
    }
    template <int Tiles>
    __device__ __forceinline__ static void add_to_step(const Operand& top, const Operand& bottom,
                                                       const Operand (&columns)[Tiles], double (&step)[Tiles][4]) {
        add(top, bottom, columns, step);
    }
    template <int Tiles>
    __device__ __forceinline__ static void add_abreast(const Operand& top, const Operand& bottom,
                                                       const Operand (&columns)[Tiles], double (&sum)[Tiles][4]) {
        add(top, bottom, columns, sum);
    }
};

}  // namespace mlff::gpu
