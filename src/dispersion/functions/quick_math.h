// SPDX-License-Identifier: MIT
// Functions of which a GPU has approximations in single precision: exponential(x) is good to 2 + 1.2 |x| units in the
// last place, the others to two. In double precision, and on the host, they are exact to rounding.
#pragma once

#include <cmath>

#include "core/host_device.h"

namespace mlff::dispersion {

MLFF_HOST_DEVICE inline double inverse(double x) { return 1 / x; }
MLFF_HOST_DEVICE inline double inverse_root(double x) { return 1 / std::sqrt(x); }
MLFF_HOST_DEVICE inline double exponential(double x) { return std::exp(x); }

#ifdef __CUDA_ARCH__
// These instructions take numbers below 2^-126 for zero. Without that each of them needs three more.
__device__ inline float inverse(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float inverse_root(float x) {
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float exponential(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));  // 2^(x / ln 2)
    return y;
}
#else
MLFF_HOST_DEVICE inline float inverse(float x) { return 1 / x; }
MLFF_HOST_DEVICE inline float inverse_root(float x) { return 1 / std::sqrt(x); }
MLFF_HOST_DEVICE inline float exponential(float x) { return std::exp(x); }
#endif

}  // namespace mlff::dispersion
