// SPDX-License-Identifier: MIT
// src/gpu/runtime/cluster.h for the emulated GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>

#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {

inline int rank_in_cluster() { return emulated::current / emulated::block_size; }
inline void meet_cluster() { emulated::wait(emulated::State::at_cluster_barrier); }
inline uint4 load_from_peer(const void* own, int rank) {
    const auto offset = static_cast<const unsigned char*>(own) - emulated::shared_memory[rank_in_cluster()];
    if (offset < 0 || offset + 16 > static_cast<std::ptrdiff_t>(emulated::kSharedBytes) || offset % 16 != 0)
        std::abort();
    return *reinterpret_cast<const uint4*>(emulated::shared_memory[rank] + offset);
}

template <class... Parameters>
bool can_launch_clusters(const char*, void (*)(Parameters...)) {
    return true;
}

template <class... Parameters, class... Arguments>
void launch_clusters(const char* doing, void (*kernel)(Parameters...), int64_t cluster_count, int cluster_size,
                     int threads, size_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = dim3(static_cast<unsigned>(cluster_size));
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(cluster_count * cluster_size));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), doing);
}

}  // namespace mlff::gpu
