// SPDX-License-Identifier: MIT
// Memory of a GPU that other processes of the machine read, and that of others. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "gpu/runtime/gpu_address.h"

namespace mlff::gpu {

// Is given back when it is destroyed: others must have closed it by then.
class SharedAllocation {
public:
    SharedAllocation() = default;
    SharedAllocation(int64_t bytes, const char* purpose);  // zero bytes are memory too
    SharedAllocation(SharedAllocation&& other) noexcept;
    SharedAllocation& operator=(SharedAllocation&& other) noexcept;
    ~SharedAllocation();

    unsigned char* data() const { return first_ ? first_ + kHead : nullptr; }
    int64_t bytes() const { return bytes_; }
    const GpuAddress& address() const { return address_; }

    static constexpr int64_t kHead = 256;  // bytes before data(), which begin with the token

private:
    unsigned char* first_ = nullptr;
    int64_t bytes_ = 0;
    GpuAddress address_;
};

// What others have allocated, as this process sees it.
class OpenedAllocations {
public:
    OpenedAllocations() = default;
    OpenedAllocations(const OpenedAllocations&) = delete;
    OpenedAllocations& operator=(const OpenedAllocations&) = delete;
    ~OpenedAllocations();

    // data() of that allocation. Opened once, and kept. Throws Error{device} with the reason where this process cannot
    // read it.
    const unsigned char* open(const GpuAddress& address);
    // Begins a round: what is not opened again until close_rest() is closed by that.
    void begin_round();
    void close_rest();

private:
    struct Opened {
        GpuAddress address;
        unsigned char* first = nullptr;
        void* opened = nullptr;  // what the handle of another process gave
        bool is_used = true;
    };
    static Opened try_open(const GpuAddress& address);
    static void close(const Opened& opened);

    std::vector<Opened> opened_;
};

}  // namespace mlff::gpu
