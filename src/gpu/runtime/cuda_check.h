// SPDX-License-Identifier: MIT
// CUDA calls and kernel launches whose failure becomes Error{device}. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "core/error.h"

namespace mlff::gpu {

// `doing` completes "... failed on the GPU".
inline void check(cudaError_t status, const char* doing) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // reported here, so a later call must not report it again
    fail(Status::device, doing, " failed on the GPU: ", cudaGetErrorString(status));
}

// The first statement of every kernel. On GPUs that support it (compute capability 9.0), launch() starts a kernel while
// its predecessor in the stream still runs. This call waits until the predecessor has finished and its results are
// visible, and allows the next kernel to start. This hides the launch latency. Code that depends on no earlier kernel
// may come before this call. So may code that depends on those before the predecessor: since it called this first,
// they have finished.
__device__ __forceinline__ void await_predecessor() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Enables the early start of a kernel. Used only for code that has the instructions above.
class EarlyStart {
public:
    template <class... Parameters>
    EarlyStart(void (*kernel)(Parameters...), cudaLaunchConfig_t& config, const char* doing) {
        cudaFuncAttributes attributes{};
        check(cudaFuncGetAttributes(&attributes, kernel), doing);
        if (attributes.ptxVersion < 90) return;
        attribute_.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute_.val.programmaticStreamSerializationAllowed = 1;
        config.attrs = &attribute_;
        config.numAttrs = 1;
    }

private:
    cudaLaunchAttribute attribute_{};
};

// kernel<<<blocks, threads, 0, stream>>>(arguments...), with its own status: cudaGetLastError would also report errors
// that the caller left behind.
template <class... Parameters, class... Arguments>
void launch(const char* doing, void (*kernel)(Parameters...), int64_t blocks, int threads, cudaStream_t stream,
            Arguments&&... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.stream = stream;
    const EarlyStart early(kernel, config, doing);
    check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), doing);
}

// Raises a kernel's shared memory limit to the maximum per block, if it needs more than the default. Always sets the
// same number: another thread's session may be between this call and its launch of the same kernel.
template <class... Parameters>
void allow_shared_memory(const char* doing, void (*kernel)(Parameters...), size_t needed_bytes) {
    constexpr size_t kWithoutAsking = 48 << 10;  // default limit, including what the kernel declares statically
    if (needed_bytes <= kWithoutAsking / 2) return;
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), doing);
    if (needed_bytes + attributes.sharedSizeBytes <= kWithoutAsking) return;
    if (static_cast<size_t>(attributes.maxDynamicSharedSizeBytes) >= needed_bytes) return;
    int device = 0, most = 0;
    check(cudaGetDevice(&device), doing);
    check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), doing);
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               most - static_cast<int>(attributes.sharedSizeBytes)),
          doing);
}

// launch() for a grid of several dimensions, with shared memory whose size is chosen at run time.
struct LaunchShape {
    dim3 blocks;
    int threads = 0;
    size_t shared_bytes = 0;
};
template <class... Parameters, class... Arguments>
void launch(const char* doing, void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
            Arguments&&... arguments) {
    allow_shared_memory(doing, kernel, shape.shared_bytes);
    cudaLaunchConfig_t config{};
    config.gridDim = shape.blocks;
    config.blockDim = dim3(static_cast<unsigned>(shape.threads));
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = stream;
    const EarlyStart early(kernel, config, doing);
    check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), doing);
}

}  // namespace mlff::gpu
