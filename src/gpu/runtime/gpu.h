// SPDX-License-Identifier: MIT
// The GPUs that CUDA can use. Builds without CUDA have the same functions, but no GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device.h"

namespace mlff {

struct Gpu {
    int ordinal = 0;  // CUDA's device number. Not the index in the inventory,
                      // which omits GPUs that cannot be used
    std::string name;
    int compute_capability = 0;  // 90 for 9.0
    int64_t memory_bytes = 0;
    int clock_kHz = 0;  // highest clock of its multiprocessors; 0 if unknown
};

struct GpuInventory {
    std::vector<Gpu> gpus;
    std::string why_none;     // "" if there is a GPU
    int runtime_version = 0;  // 13000 for 13.0; 0 in builds without CUDA
    int driver_version = 0;   // the newest CUDA that the driver supports; 0 without a driver
};

// Queried once and cached. Never throws: having no driver or no GPU is not an error.
const GpuInventory& gpu_inventory();

// CUDA's number for the GPU of a session. Throws Error{device} if there is no such GPU.
int gpu_ordinal(const Device& device);

// Memory in use on a GPU, by all processes, in bytes. Throws Error{device}.
int64_t gpu_used_bytes(int ordinal);

// What this build's CUDA runtime reports. Defined in gpu_cuda.cu and in gpu_none.cpp.
GpuInventory query_gpus();

}  // namespace mlff
