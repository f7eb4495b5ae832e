// SPDX-License-Identifier: MIT
// Products of rows in shared memory and a matrix, on tensor cores, where nothing is converted in the inner loop: rows
// are written in the order in which lanes load them, and so is the matrix, by the host.
//
// A block has 16 rows and 16 channels. Lane 4 g + q writes channels 4 q ... 4 q + 3 of rows g and g + 8, and loads the
// same numbers as operands. It gets the products of these rows with columns 4 q ... 4 q + 3 of every 16: what it gets
// from one product, it may write as rows of the next.
//
// In single precision every number is split into two numbers of half precision, high and low, 22 bits together. Of the
// four products, low times low is left out. Half precision has few exponents, so the numbers of a row in a block share
// a power of two, which brings the largest to 2^14 ... 2^15, and so do all numbers of a matrix. Numbers down to 2^-17
// of the largest keep their 22 bits, and smaller ones an error of 2^-39 of the largest. Tensor cores do not round to
// nearest when they add, so they only add the products of one block. Blocks are added outside of them, where the power
// of two is undone. The error is that of single precision, whatever the size of the numbers.
//
// In `fast` every number is one half. Rows have no power of two, so sums stay in the tensor cores over all blocks:
// numbers of rows must be below 65504, and lose digits below 6e-5.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gpu/engine/radial_product.h"
#include "gpu/engine/stored_number.h"
#include "gpu/engine/tensor_product.h"

namespace mlff::gpu {

inline constexpr int kBlockChannels = 16;

// 16 rows and 16 channels in shared memory.
template <class Stored>
struct RowBlock;
template <>
struct RowBlock<float> {
    uint4 high[32], low[32];  // [lane]: channels 4 q, 4 q + 1 of rows g and g + 8, then channels 4 q + 2, 4 q + 3
    float2 unscale[8];        // of rows g and g + 8
};
template <>
struct RowBlock<__half> {
    uint4 numbers[32];  // as `high` above
};
template <>
struct RowBlock<double> {
    Pack<double> numbers[2][2][32];  // [channels 4 q, 4 q + 1 or 4 q + 2, 4 q + 3][row g or g + 8][lane]
};

// 16 rows and 16 columns of a matrix, as far as a lane loads them: columns 4 (g / 2) + g % 2 and the second after it.
template <class Stored>
struct MatrixBlock;
template <>
struct MatrixBlock<float> {
    using Unit = uint4;  // numbers 4 q, 4 q + 1 and 4 q + 2, 4 q + 3 of a column: high, then low
    static constexpr int kUnits = 2;
    Unit of[kUnits];  // [column]
};
template <>
struct MatrixBlock<__half> {
    using Unit = uint4;  // numbers 4 q, 4 q + 1 and 4 q + 2, 4 q + 3 of the first column, then of the second
    static constexpr int kUnits = 1;
    Unit of[kUnits];
};
template <>
struct MatrixBlock<double> {
    using Unit = Pack<double>;  // two numbers of a column
    static constexpr int kUnits = 4;
    Unit of[kUnits];  // [numbers 4 q, 4 q + 1 or 4 q + 2, 4 q + 3][column]
};

// A matrix on the device: [16 columns][16 rows][unit of MatrixBlock][lane].
template <class Stored>
struct RowMatrix {
    const typename MatrixBlock<Stored>::Unit* units = nullptr;
    int depth_blocks = 0;
    RealOf<Stored> unscale = 1;  // sums of products, see RowScale, times this are the product
};
// The same on the host.
template <class Stored>
struct PackedRowMatrix {
    std::vector<typename MatrixBlock<Stored>::Unit> units;
    int depth_blocks = 0;
    RealOf<Stored> unscale = 1;
};

// The largest numbers that are split become 2^kHalfTop ... 2^(kHalfTop + 1).
inline constexpr int kHalfTop = 14;

inline int exponent_of_largest(const std::vector<double>& numbers) {
    double largest = 0;
    for (const double x : numbers) largest = std::max(largest, std::abs(x));
    return largest > 0 ? std::max(std::ilogb(largest), -126) : 0;  // that of a normal number in single precision
}
// Numbers of one of the two columns, for a lane whose first unit is `to`.
inline void pack_numbers(MatrixBlock<float>, const double (&numbers)[4], int exponent, int column, uint4* to) {
    float high[4], low[4];
    for (int i = 0; i < 4; ++i) {
        const double scaled = std::ldexp(numbers[i], kHalfTop - exponent);
        high[i] = static_cast<float>(scaled);
        low[i] = static_cast<float>(scaled - static_cast<double>(__half2float(__float2half_rn(high[i]))));
    }
    using P = RadialProduct;
    to[32 * column] = make_uint4(P::high_pair(high[0], high[1]), P::high_pair(high[2], high[3]),
                                 P::high_pair(low[0], low[1]), P::high_pair(low[2], low[3]));
}
inline void pack_numbers(MatrixBlock<__half>, const double (&numbers)[4], int exponent, int column, uint4* to) {
    uint32_t pairs[2];
    for (int pair = 0; pair < 2; ++pair)
        pairs[pair] =
            RadialProduct::high_pair(static_cast<float>(std::ldexp(numbers[2 * pair], kHalfTop - exponent)),
                                     static_cast<float>(std::ldexp(numbers[2 * pair + 1], kHalfTop - exponent)));
    (column == 0 ? to->x : to->z) = pairs[0];
    (column == 0 ? to->y : to->w) = pairs[1];
}
inline void pack_numbers(MatrixBlock<double>, const double (&numbers)[4], int, int column, Pack<double>* to) {
    to[32 * column] = {{numbers[0], numbers[1]}};
    to[32 * (2 + column)] = {{numbers[2], numbers[3]}};
}
// `numbers` is [depth][columns]. Both are multiples of 16.
template <class Stored>
PackedRowMatrix<Stored> pack_row_matrix(const std::vector<double>& numbers, int depth, int columns) {
    using Block = MatrixBlock<Stored>;
    const int exponent = sizeof(Stored) == 8 ? 0 : exponent_of_largest(numbers);
    PackedRowMatrix<Stored> packed;
    packed.depth_blocks = depth / kBlockChannels;
    packed.unscale = static_cast<RealOf<Stored>>(std::ldexp(1.0, kIsFast<Stored> ? exponent - kHalfTop : exponent));
    packed.units.resize(static_cast<size_t>(columns / kBlockChannels * packed.depth_blocks) * Block::kUnits * 32);
    auto* to = packed.units.data();
    for (int first_column = 0; first_column < columns; first_column += kBlockChannels)
        for (int first = 0; first < depth; first += kBlockChannels, to += Block::kUnits * 32)
            for (int tile = 0; tile < 2; ++tile)
                for (int lane = 0; lane < 32; ++lane) {
                    const int g = lane / 4, column = first_column + 4 * (g / 2) + 2 * tile + g % 2;
                    double own[4];
                    for (int i = 0; i < 4; ++i)
                        own[i] =
                            numbers[static_cast<size_t>(first + 4 * (lane % 4) + i) * static_cast<size_t>(columns) +
                                    static_cast<size_t>(column)];
                    pack_numbers(Block(), own, exponent, tile, to + lane);
                }
    return packed;
}

// The powers of two of a row: scale * x is within half precision. A lane has four of the 16 numbers in a block.
struct RowScale {
    float scale, unscale;

    // All lanes of a warp must call it.
    __device__ __forceinline__ explicit RowScale(const float (&numbers)[4]) {
        uint32_t largest = 0;  // bits are in the order of the numbers' sizes
#pragma unroll
        for (int i = 0; i < 4; ++i) largest = max(largest, __float_as_uint(numbers[i]) & 0x7fffffffu);
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        // Exponents in bits: kOne is that of 1. Both powers of two must be normal numbers. The one of the matrix is
        // undone here too, as if the largest number of the matrix were 1 ... 2: sums then are not far from the rows.
        constexpr uint32_t kOne = 127;
        const uint32_t exponent = max(largest >> 23, 2 * kHalfTop + 1u);
        scale = __uint_as_float((2 * kOne + kHalfTop - exponent) << 23);
        unscale = __uint_as_float((exponent - 2 * kHalfTop) << 23);
    }
};

// Writes channels 4 q ... 4 q + 3 of rows g and g + 8. All lanes of a warp must call it.
__device__ __forceinline__ void store_rows(RowBlock<float>& block, int lane, const float (&numbers)[2][4]) {
    const RowScale scales[2] = {RowScale(numbers[0]), RowScale(numbers[1])};
    if (lane % 4 == 0) block.unscale[lane / 4] = make_float2(scales[0].unscale, scales[1].unscale);
    uint32_t high[2][2], low[2][2];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
            const float a = scales[h].scale * numbers[h][2 * pair], b = scales[h].scale * numbers[h][2 * pair + 1];
            high[pair][h] = RadialProduct::high_pair(a, b);
            low[pair][h] = RadialProduct::high_pair(RadialProduct::rest(a), RadialProduct::rest(b));
        }
    block.high[lane] = make_uint4(high[0][0], high[0][1], high[1][0], high[1][1]);
    block.low[lane] = make_uint4(low[0][0], low[0][1], low[1][0], low[1][1]);
}
__device__ __forceinline__ void store_rows(RowBlock<__half>& block, int lane, const float (&numbers)[2][4]) {
    block.numbers[lane] =
        make_uint4(pair_of_halves(numbers[0][0], numbers[0][1]), pair_of_halves(numbers[1][0], numbers[1][1]),
                   pair_of_halves(numbers[0][2], numbers[0][3]), pair_of_halves(numbers[1][2], numbers[1][3]));
}
__device__ __forceinline__ void store_rows(RowBlock<double>& block, int lane, const double (&numbers)[2][4]) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair)
#pragma unroll
        for (int h = 0; h < 2; ++h) block.numbers[pair][h][lane] = {{numbers[h][2 * pair], numbers[h][2 * pair + 1]}};
}

// Adds the products of a block of rows and one of the matrix. sum[tile][i] is that of row g + 8 (i / 2) and column
// 4 q + 2 tile + i % 2.
__device__ __forceinline__ void add_product(const RowBlock<float>& rows, const MatrixBlock<float>& matrix, int lane,
                                            float (&sum)[2][4]) {
    const uint4 high = rows.high[lane], low = rows.low[lane];
    const float2 unscale = rows.unscale[lane / 4];
    float top[2][2] = {}, bottom[2][2] = {};
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) mma_f16(top[tile], bottom[tile], low, matrix.of[tile].x, matrix.of[tile].y);
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) mma_f16(top[tile], bottom[tile], high, matrix.of[tile].z, matrix.of[tile].w);
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) mma_f16(top[tile], bottom[tile], high, matrix.of[tile].x, matrix.of[tile].y);
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            sum[tile][i] += unscale.x * top[tile][i];
            sum[tile][2 + i] += unscale.y * bottom[tile][i];
        }
}
__device__ __forceinline__ void add_product(const RowBlock<__half>& rows, const MatrixBlock<__half>& matrix, int lane,
                                            float (&sum)[2][4]) {
    const uint4 numbers = rows.numbers[lane], columns = matrix.of[0];
    mma_f16(sum[0], numbers, columns.x, columns.y);
    mma_f16(sum[1], numbers, columns.z, columns.w);
}
__device__ __forceinline__ void add_product(const RowBlock<double>& rows, const MatrixBlock<double>& matrix, int lane,
                                            double (&sum)[2][4]) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const Pack<double> columns[2] = {matrix.of[2 * part], matrix.of[2 * part + 1]};
        TensorProduct<double>::add(rows.numbers[part][0][lane], rows.numbers[part][1][lane], columns, sum);
    }
}

__device__ __forceinline__ uint4 load_unit(const uint4* from) { return load_bytes(from); }
__device__ __forceinline__ Pack<double> load_unit(const Pack<double>* from) { return load_pack(from->of); }

// The product of a warp with 16 columns of a matrix, over `Blocks` blocks of depth. The constructor begins to load the
// matrix, which may be before the rows are written. Loads are `WantedAhead` blocks ahead of the products, or fewer.
template <class Stored, int Blocks, int WantedAhead>
class RowProduct {
public:
    using Real = RealOf<Stored>;
    static constexpr int kAhead = Blocks % WantedAhead == 0 ? WantedAhead : Blocks % 2 == 0 ? 2 : 1;

    __device__ __forceinline__ RowProduct(const RowMatrix<Stored>& matrix, int first_column, int lane)
        : own_(matrix.units + int64_t{first_column / kBlockChannels} * matrix.depth_blocks * kBlockUnits + lane),
          unscale_(matrix.unscale),
          lane_(lane) {
#pragma unroll
        for (int a = 0; a < kAhead; ++a) ahead_[a] = load(a);
    }

    // product[t][h][i] is that of row 16 t + 8 h + g and column 4 q + i of the 16. `rows` is [Blocks][Tiles]; only the
    // first `blocks`, a multiple of kAhead, are used. To be called once.
    template <int Tiles>
    __device__ __forceinline__ void multiply(const RowBlock<Stored>* rows, Real (&product)[Tiles][2][4],
                                             int blocks = Blocks) {
        Real sum[Tiles][2][4] = {};
#pragma unroll 1
        for (int first = 0; first < blocks; first += kAhead) {
#pragma unroll
            for (int a = 0; a < kAhead; ++a) {
                const MatrixBlock<Stored> matrix = ahead_[a];
                if (first + kAhead < blocks) ahead_[a] = load(first + kAhead + a);
#pragma unroll
                for (int t = 0; t < Tiles; ++t) add_product(rows[(first + a) * Tiles + t], matrix, lane_, sum[t]);
            }
        }
#pragma unroll
        for (int t = 0; t < Tiles; ++t)
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
                for (int i = 0; i < 4; ++i) product[t][h][i] = unscale_ * sum[t][i / 2][2 * h + i % 2];
    }

private:
    static constexpr int kBlockUnits = 32 * MatrixBlock<Stored>::kUnits;

    __device__ __forceinline__ MatrixBlock<Stored> load(int block) const {
        MatrixBlock<Stored> matrix;
#pragma unroll
        for (int unit = 0; unit < MatrixBlock<Stored>::kUnits; ++unit)
            matrix.of[unit] = load_unit(own_ + block * kBlockUnits + 32 * unit);
        return matrix;
    }

    const typename MatrixBlock<Stored>::Unit* own_;
    Real unscale_;
    int lane_;
    MatrixBlock<Stored> ahead_[kAhead];
};

}  // namespace mlff::gpu
