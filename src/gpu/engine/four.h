// SPDX-License-Identifier: MIT
// Four adjacent numbers at a multiple of 16 bytes, which a thread loads or stores together. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

namespace mlff::gpu {

template <class Real>
struct alignas(16) Four {
    Real of[4];
};

template <class Real>
__device__ __forceinline__ Four<Real> load_four(const Real* from) {
    return *reinterpret_cast<const Four<Real>*>(from);
}
template <class Real>
__device__ __forceinline__ void store_four(Real* to, const Four<Real>& numbers) {
    *reinterpret_cast<Four<Real>*>(to) = numbers;
}
template <class Real>
__device__ __forceinline__ void store_four(Real* to, const Real (&numbers)[4]) {
    *reinterpret_cast<Four<Real>*>(to) = {{numbers[0], numbers[1], numbers[2], numbers[3]}};
}

}  // namespace mlff::gpu
