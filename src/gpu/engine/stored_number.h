// SPDX-License-Identifier: MIT
// What a precision means to kernels. For CUDA sources only.
//
// In templates, a type stands for the precision: that of the numbers which are read most often. These are the rows that
// atoms gather from their neighbours, functions of edges, and operands of products.
//   double  fp64
//   float   mixed: operands of products are split into two numbers of half precision
//   __half  fast: one product of halves instead of three
// All else is stored and summed as RealOf<Stored>. A number beyond the range of half precision becomes infinite, and so
// do the results, which a session then refuses.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "gpu/engine/four.h"
#include "gpu/engine/instructions.h"

namespace mlff::gpu {

template <class Stored>
struct StoredNumber {
    using Real = Stored;
};
template <>
struct StoredNumber<__half> {
    using Real = float;
};
template <class Stored>
using RealOf = typename StoredNumber<Stored>::Real;

template <class Stored>
inline constexpr bool kIsFast = sizeof(Stored) == 2;

// Four adjacent numbers at a multiple of 8 bytes.
template <>
struct alignas(8) Four<__half> {
    uint32_t pairs[2];
};

__device__ __forceinline__ float2 numbers_of_pair(uint32_t pair) {
    __half both[2];
    memcpy(both, &pair, sizeof pair);
    return make_float2(__half2float(both[0]), __half2float(both[1]));
}

// As numbers to compute with.
template <class Real>
__device__ __forceinline__ const Four<Real>& widen(const Four<Real>& numbers) {
    return numbers;
}
__device__ __forceinline__ Four<float> widen(const Four<__half>& numbers) {
    const float2 first = numbers_of_pair(numbers.pairs[0]), second = numbers_of_pair(numbers.pairs[1]);
    return {{first.x, first.y, second.x, second.y}};
}

__device__ __forceinline__ void store_four(__half* to, const float (&numbers)[4]) {
    *reinterpret_cast<Four<__half>*>(to) = {{pair_of_halves(numbers[0], numbers[1]),  //
                                             pair_of_halves(numbers[2], numbers[3])}};
}
template <class Real>
__device__ __forceinline__ void store_number(Real* to, Real number) {
    *to = number;
}
__device__ __forceinline__ void store_number(__half* to, float number) { *to = __float2half_rn(number); }

}  // namespace mlff::gpu
