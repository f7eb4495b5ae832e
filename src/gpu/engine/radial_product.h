// SPDX-License-Identifier: MIT
// The last layer of radial networks on tensor cores: a warp multiplies functions of 8 edges by the weights of 32
// channels.
//
// Every number is split into two numbers of half precision, high and low. Of the four products, low times low is left
// out; the other three are added in single precision, so the error is that of single precision. `fast` leaves out the
// low numbers of weights too.
//
// Lane 4 g + q holds functions 4 q ... 4 q + 3 of edge g, and weights of channels 4 g ... 4 g + 3. It gets the products
// of these four channels with edges 2 q and 2 q + 1. Operands are stored in the order in which lanes load them: a plane
// is 16 bytes for each lane.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "gpu/engine/instructions.h"

namespace mlff::gpu {

inline constexpr int kEdgesPerTile = 8;
inline constexpr int kChannelsPerSlice = 32;
inline constexpr int kFunctionsPerStep = 16;

struct RadialProduct {
    static constexpr int kFunctionPlanes = 1, kWeightPlanes = 4;

    __host__ __device__ static uint32_t pair(__half a, __half b) {
        const __half both[2] = {a, b};
        uint32_t bits;
        memcpy(&bits, both, sizeof bits);
        return bits;
    }
    __host__ __device__ static uint32_t high_pair(float a, float b) {
        return pair(__float2half_rn(a), __float2half_rn(b));
    }
    __host__ __device__ static float rest(float a) { return a - __half2float(__float2half_rn(a)); }

    // numbers[i]: function 4 q + i of edge g
    __device__ static void store_functions(const float (&numbers)[4], uint4* to) {
        *to = make_uint4(high_pair(numbers[0], numbers[1]), high_pair(numbers[2], numbers[3]),
                         high_pair(rest(numbers[0]), rest(numbers[1])), high_pair(rest(numbers[2]), rest(numbers[3])));
    }
    // numbers[i][c]: weight of function 4 q + i for channel 4 g + c. Planes are 32 items apart.
    static void store_weights(const float (&numbers)[4][4], uint4* to) {
        for (int tile = 0; tile < 2; ++tile) {
            const int c = 2 * tile, d = c + 1;
            to[32 * (2 * tile)] =
                make_uint4(high_pair(numbers[0][c], numbers[1][c]), high_pair(numbers[0][d], numbers[1][d]),
                           high_pair(numbers[2][c], numbers[3][c]), high_pair(numbers[2][d], numbers[3][d]));
            to[32 * (2 * tile + 1)] = make_uint4(high_pair(rest(numbers[0][c]), rest(numbers[1][c])),
                                                 high_pair(rest(numbers[0][d]), rest(numbers[1][d])),
                                                 high_pair(rest(numbers[2][c]), rest(numbers[3][c])),
                                                 high_pair(rest(numbers[2][d]), rest(numbers[3][d])));
        }
    }

    struct Functions {
        uint4 bits;
    };
    __device__ __forceinline__ static Functions load_functions(const uint4* from) { return {__ldg(from)}; }
    __device__ __forceinline__ static void multiply(const uint4& a, uint32_t b0, uint32_t b1, float (&c)[2],
                                                    float (&d)[2]) {
        mma_f16(c, d, a, b0, b1);
    }
    // Adds to products[tile][channel][edge]. `weights` points to this lane's part of the first plane.
    template <int Tiles>
    __device__ __forceinline__ static void add(const uint4* weights, const Functions (&functions)[Tiles], bool is_fast,
                                               float (&products)[Tiles][4][2]) {
        const uint4 high[2] = {weights[0], weights[64]};
        if (!is_fast) {
            const uint4 low[2] = {weights[32], weights[96]};
#pragma unroll
            for (int half = 0; half < 2; ++half)
#pragma unroll
                for (int t = 0; t < Tiles; ++t)
                    multiply(low[half], functions[t].bits.x, functions[t].bits.y, products[t][2 * half],
                             products[t][2 * half + 1]);
        }
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int t = 0; t < Tiles; ++t) {
                multiply(high[half], functions[t].bits.z, functions[t].bits.w, products[t][2 * half],
                         products[t][2 * half + 1]);
                multiply(high[half], functions[t].bits.x, functions[t].bits.y, products[t][2 * half],
                         products[t][2 * half + 1]);
            }
    }
};

}  // namespace mlff::gpu
