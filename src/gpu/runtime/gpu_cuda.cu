// SPDX-License-Identifier: MIT
#include <cuda_runtime.h>

#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/cuda_stream.h"
#include "gpu/runtime/driver_library.h"
#include "gpu/runtime/gpu.h"

namespace mlff {
namespace {

// Proves that this build has machine code for the device; a driver query alone does not.
__global__ void write_answer(int* answer) { *answer = 42; }

// 0 if the driver does not know it.
int attribute(cudaDeviceAttr which, int device) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess) return value;
    cudaGetLastError();
    return 0;
}

// "" if a test kernel runs on the device, else why not.
std::string why_kernels_fail(int device) {
    int previous = 0, answer = 0;
    int* on_device = nullptr;
    cudaGetDevice(&previous);
    cudaError_t status = cudaSetDevice(device);
    if (status == cudaSuccess) status = cudaMalloc(&on_device, sizeof(int));
    if (status == cudaSuccess) {
        write_answer<<<1, 1>>>(on_device);
        status = cudaGetLastError();
    }
    if (status == cudaSuccess) status = cudaMemcpy(&answer, on_device, sizeof(int), cudaMemcpyDeviceToHost);
    cudaFree(on_device);
    cudaSetDevice(previous);
    if (status != cudaSuccess) return cudaGetErrorString(status);
    return answer == 42 ? "" : "a test kernel gave a wrong answer";
}

}  // namespace

GpuInventory query_gpus() {
    load_driver_of_wsl();
    GpuInventory inventory;
    cudaRuntimeGetVersion(&inventory.runtime_version);
    cudaDriverGetVersion(&inventory.driver_version);
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0) {
        cudaGetLastError();  // reported here, so a later call must not report it again
        inventory.why_none = inventory.driver_version == 0 ? "no NVIDIA driver is installed"
                             : status != cudaSuccess       ? cudaGetErrorString(status)
                                                           : "the NVIDIA driver finds no GPU";
        return inventory;
    }
    for (int device = 0; device < count; ++device) {
        cudaDeviceProp properties{};
        if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) continue;
        const std::string why = why_kernels_fail(device);
        if (!why.empty()) {
            inventory.why_none = std::string(properties.name) + ": " + why;
            continue;
        }
        inventory.gpus.push_back(
            {.ordinal = device,
             .name = properties.name,
             .compute_capability = 10 * properties.major + properties.minor,
             .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem),
             .multiprocessor_count = properties.multiProcessorCount,
             .clock_kHz = attribute(cudaDevAttrClockRate, device),
             .memory_clock_kHz = attribute(cudaDevAttrMemoryClockRate, device),
             .memory_bus_bits = properties.memoryBusWidth,
             .l2_cache_bytes = properties.l2CacheSize,
             .shared_memory_per_block_bytes = static_cast<int64_t>(properties.sharedMemPerBlockOptin),
             .shared_memory_per_multiprocessor_bytes = static_cast<int64_t>(properties.sharedMemPerMultiprocessor)});
    }
    if (!inventory.gpus.empty()) inventory.why_none.clear();
    return inventory;
}

GpuMemoryState gpu_memory_state(int ordinal) {
    const gpu::CurrentDevice current(ordinal);
    size_t free_bytes = 0, total_bytes = 0;
    gpu::check(cudaMemGetInfo(&free_bytes, &total_bytes), "querying the free memory");
    return {static_cast<int64_t>(total_bytes), static_cast<int64_t>(free_bytes)};
}

void gpu_synchronize(int ordinal) {
    const gpu::CurrentDevice current(ordinal);
    gpu::check(cudaDeviceSynchronize(), "waiting for the GPU");
}

}  // namespace mlff
