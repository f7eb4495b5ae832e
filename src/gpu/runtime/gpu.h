// SPDX-License-Identifier: MIT
// GPUs that CUDA can use. Builds without CUDA have the same functions and no GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device.h"

namespace mlff {

struct Gpu {
    int ordinal = 0;  // CUDA's number for it: GPUs that cannot be used are not in the inventory, so this need not be
                      // the index there
    std::string name;
    int compute_capability = 0;  // 90 for 9.0
    int64_t memory_bytes = 0;
    int clock_kHz = 0;  // the highest of its processors; 0 if unknown
};

struct GpuInventory {
    std::vector<Gpu> gpus;
    std::string why_none;     // "" if there is one
    int runtime_version = 0;  // 13000 for 13.0; 0 in builds without CUDA
    int driver_version = 0;   // the newest CUDA that the driver serves; 0 if there is no driver
};

// Asked once and remembered. Never throws: no driver and no GPU are ordinary states.
const GpuInventory& gpu_inventory();

// CUDA's number for the GPU of a session. Throws Error{device} if there is no such GPU.
int gpu_ordinal(const Device& device);

// Bytes of a GPU's memory that are in use, by this process and others. Throws Error{device}.
int64_t gpu_used_bytes(int ordinal);

// What the CUDA runtime of this build reports; defined once in gpu_cuda.cu and once in gpu_none.cpp.
GpuInventory query_gpus();

}  // namespace mlff
