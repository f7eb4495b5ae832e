// SPDX-License-Identifier: MIT
// Thread block clusters: blocks that run at the same time and can use each other's shared memory (compute capability
// 9.0). For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {

// The rank of this block in its cluster.
__device__ __forceinline__ int rank_in_cluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
#else
    return 0;
#endif
}

// A barrier for all threads of the cluster. Afterwards all of them see what any has written, to shared memory or not.
__device__ __forceinline__ void meet_cluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// Loads 16 bytes of the shared memory of the block of that rank, at the place that `own` has in this block's memory.
__device__ __forceinline__ uint4 load_from_peer(const void* own, int rank) {
    uint4 bytes = {};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    uint32_t peer;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(peer)
        : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(own))), "r"(rank));
    asm volatile("ld.shared::cluster.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(bytes.x), "=r"(bytes.y), "=r"(bytes.z), "=r"(bytes.w)
                 : "r"(peer)
                 : "memory");
#endif
    return bytes;
}

// Stores a number in the shared memory of the block of that rank, at the place that `own` has in this block's memory.
__device__ __forceinline__ void store_to_peer(uint32_t* own, int rank, uint32_t number) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    uint32_t peer;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(peer)
        : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(own))), "r"(rank));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(peer), "r"(number) : "memory");
#else
    (void)rank;
    *own = number;
#endif
}

// Whether the GPU has clusters, and the kernel's code was compiled for them.
template <class... Parameters>
bool can_launch_clusters(const char* doing, void (*kernel)(Parameters...)) {
    int device = 0, has_clusters = 0;
    check(cudaGetDevice(&device), doing);
    check(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, device), doing);
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), doing);
    return has_clusters != 0 && attributes.ptxVersion >= 90;
}

// launch() with `cluster_count` clusters of `cluster_size` blocks.
template <class... Parameters, class... Arguments>
void launch_clusters(const char* doing, void (*kernel)(Parameters...), int64_t cluster_count, int cluster_size,
                     int threads, size_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
    allow_shared_memory(doing, kernel, shared_bytes);
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = static_cast<unsigned>(cluster_size);
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(cluster_count * cluster_size));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
    check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), doing);
}

}  // namespace mlff::gpu
