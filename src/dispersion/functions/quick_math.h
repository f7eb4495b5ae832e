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
__device__ inline float inverse(float x) { return __fdividef(1.0f, x); }
__device__ inline float inverse_root(float x) { return rsqrtf(x); }
__device__ inline float exponential(float x) { return __expf(x); }
#else
MLFF_HOST_DEVICE inline float inverse(float x) { return 1 / x; }
MLFF_HOST_DEVICE inline float inverse_root(float x) { return 1 / std::sqrt(x); }
MLFF_HOST_DEVICE inline float exponential(float x) { return std::exp(x); }
#endif

}  // namespace mlff::dispersion
