// SPDX-License-Identifier: MIT
// The GPUs that CUDA can use. Builds without CUDA have the same functions, but no GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"

namespace mlff {

struct Gpu {
    int ordinal = 0;  // CUDA's device number. Not the index in the inventory,
                      // which omits GPUs that cannot be used
    std::string name;
    int compute_capability = 0;  // 90 for 9.0
    int64_t memory_bytes = 0;
    // 0 = unknown
    int multiprocessor_count = 0;
    int clock_kHz = 0;  // highest clock of its multiprocessors
    int memory_clock_kHz = 0, memory_bus_bits = 0;
    int64_t l2_cache_bytes = 0;
    int64_t shared_memory_per_block_bytes = 0;  // the most that a block may ask for
    int64_t shared_memory_per_multiprocessor_bytes = 0;

    // Bytes/s between memory and chip: two transfers over the whole bus in a cycle. No program reaches it. 0 = unknown
    double memory_bandwidth() const { return 2 * 1e3 * memory_clock_kHz * memory_bus_bits / 8; }
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

// "auto" (the first GPU, or the CPU if there is none), "cpu", "reference", "cuda" or "cuda:1". Throws Error{argument}
// for other names, Error{device} if there is no such GPU.
Device device_named(std::string_view name);

// Memory of a GPU in bytes, whichever process uses it. Throws Error{device}.
struct GpuMemoryState {
    int64_t total = 0, free = 0;
    int64_t used() const { return total - free; }
};
GpuMemoryState gpu_memory_state(int ordinal);
inline int64_t gpu_used_bytes(int ordinal) { return gpu_memory_state(ordinal).used(); }

// Waits until a GPU has done all that this process asked of it. Throws Error{device}.
void gpu_synchronize(int ordinal);

// What this build's CUDA runtime reports. Defined in gpu_cuda.cu and in gpu_none.cpp.
GpuInventory query_gpus();

}  // namespace mlff
