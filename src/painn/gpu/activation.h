// SPDX-License-Identifier: MIT
// x sigmoid(x) and its slope. For CUDA sources only.
#pragma once

namespace mlff::painn::gpu {

template <class Real>
__device__ __forceinline__ Real sigmoid(Real x) {
    return 1 / (1 + exp(-x));
}
template <class Real>
__device__ __forceinline__ Real silu(Real x) {
    return x * sigmoid(x);
}
template <class Real>
__device__ __forceinline__ Real silu_slope(Real x) {
    const Real s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

}  // namespace mlff::painn::gpu
