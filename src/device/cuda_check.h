// SPDX-License-Identifier: MIT
// CUDA calls and launches whose failure becomes Error{device}. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "core/error.h"

namespace mlff::cuda {

// `doing` completes "... failed on the GPU".
inline void check(cudaError_t status, const char* doing) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // reported here, it must not surface in a later call
    fail(Status::device, doing, " failed on the GPU: ", cudaGetErrorString(status));
}

// kernel<<<blocks, threads, 0, stream>>>(arguments...), judged by its own status: cudaGetLastError would also find errors
// that the caller left behind.
template <class... Parameters, class... Arguments>
void launch(const char* doing, void (*kernel)(Parameters...), int64_t blocks, int threads, cudaStream_t stream,
            Arguments&&... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.stream = stream;
    check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), doing);
}

}  // namespace mlff::cuda
