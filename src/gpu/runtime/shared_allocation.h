// SPDX-License-Identifier: MIT
// GPU memory shared between processes of one machine: our own allocations, and opened ones of others. For CUDA sources
// only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "gpu/runtime/gpu_address.h"

namespace mlff::gpu {

// Freed on destruction: other processes must have closed it by then.
class SharedAllocation {
public:
    SharedAllocation() = default;
    SharedAllocation(int64_t bytes, const char* purpose);  // zero bytes are allowed
    SharedAllocation(SharedAllocation&& other) noexcept;
    SharedAllocation& operator=(SharedAllocation&& other) noexcept;
    ~SharedAllocation();

    unsigned char* data() const { return first_ ? first_ + kHead : nullptr; }
    int64_t bytes() const { return bytes_; }
    const GpuAddress& address() const { return address_; }

    static constexpr int64_t kHead = 256;  // bytes before data(); they begin with the token

private:
    unsigned char* first_ = nullptr;
    int64_t bytes_ = 0;
    GpuAddress address_;
};

// Allocations of other processes, opened in this process.
class OpenedAllocations {
public:
    OpenedAllocations() = default;
    OpenedAllocations(const OpenedAllocations&) = delete;
    OpenedAllocations& operator=(const OpenedAllocations&) = delete;
    ~OpenedAllocations();

    // data() of that allocation. Opened once and kept. Throws Error{device} with the reason if this process cannot read
    // it.
    const unsigned char* open(const GpuAddress& address);
    // Begins a round: close_rest() closes everything that was not opened again since.
    void begin_round();
    void close_rest();

private:
    struct Opened {
        GpuAddress address;
        unsigned char* first = nullptr;
        void* opened = nullptr;  // the block behind another process's handle
        bool is_used = true;
    };
    static Opened try_open(const GpuAddress& address);
    static void close(const Opened& opened);

    std::vector<Opened> opened_;
};

}  // namespace mlff::gpu
