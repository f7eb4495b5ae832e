// SPDX-License-Identifier: MIT
#include <cuda_runtime.h>

#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/driver_library.h"
#include "gpu/runtime/gpu.h"

namespace mlff {
namespace {

// Proves that this build has machine code for the device; a driver query alone does not.
__global__ void write_answer(int* answer) { *answer = 42; }

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
        int clock_kHz = 0;
        if (cudaDeviceGetAttribute(&clock_kHz, cudaDevAttrClockRate, device) != cudaSuccess) {
            cudaGetLastError();
            clock_kHz = 0;
        }
        inventory.gpus.push_back({device, properties.name, 10 * properties.major + properties.minor,
                                  static_cast<int64_t>(properties.totalGlobalMem), clock_kHz});
    }
    if (!inventory.gpus.empty()) inventory.why_none.clear();
    return inventory;
}

int64_t gpu_used_bytes(int ordinal) {
    int previous = 0;
    size_t free_bytes = 0, total_bytes = 0;
    gpu::check(cudaGetDevice(&previous), "querying the current device");
    gpu::check(cudaSetDevice(ordinal), "setting the current device");
    const cudaError_t status = cudaMemGetInfo(&free_bytes, &total_bytes);
    gpu::check(cudaSetDevice(previous), "setting the current device");
    gpu::check(status, "querying the free memory");
    return static_cast<int64_t>(total_bytes - free_bytes);
}

}  // namespace mlff
