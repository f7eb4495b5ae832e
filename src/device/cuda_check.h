// SPDX-License-Identifier: MIT
// CUDA calls that failed become Error{device}. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include "core/error.h"

namespace mlff::cuda {

// `doing` completes "... failed on the GPU".
inline void check(cudaError_t status, const char* doing) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // reported here, it must not surface in a later call
    fail(Status::device, doing, " failed on the GPU: ", cudaGetErrorString(status));
}

inline void check_launch(const char* doing) { check(cudaGetLastError(), doing); }

}  // namespace mlff::cuda
