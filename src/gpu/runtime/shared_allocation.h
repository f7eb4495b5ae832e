// SPDX-License-Identifier: MIT
// Memory shared between processes of one machine: our own allocations, and opened ones of others. It is memory of a
// GPU, or pinned memory of the host. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "gpu/runtime/gpu_address.h"
#include "gpu/runtime/host_window.h"

namespace mlff::gpu {

enum class SharedIn { gpu, host };

// The first bytes of a shared allocation. Only in host memory do domains use more than the token.
struct SharedHead {
    uint64_t token = 0;
    // Written by the owner only, as std::atomic_ref.
    alignas(64) uint64_t progress = 0;
    alignas(64) uint64_t failed_turn = 0;  // 1 + the turn in which the owner failed last; 0: in none
};

// Freed on destruction: other processes must have closed it by then.
class SharedAllocation {
public:
    SharedAllocation() = default;
    SharedAllocation(SharedIn where, int64_t bytes, const char* purpose);  // zero bytes are allowed
    SharedAllocation(SharedAllocation&& other) noexcept;
    SharedAllocation& operator=(SharedAllocation&& other) noexcept;
    ~SharedAllocation();

    unsigned char* data() const { return first_ ? first_ + kHead : nullptr; }
    int64_t bytes() const { return bytes_; }
    const GpuAddress& address() const { return address_; }

    static constexpr int64_t kHead = 256;  // bytes before data(); they begin with the SharedHead
    static_assert(sizeof(SharedHead) <= kHead);

private:
    unsigned char* first_ = nullptr;
    HostWindow window_;  // SharedIn::host
    int64_t bytes_ = 0;
    GpuAddress address_;
};

// The head before SharedAllocation::data() in host memory.
inline SharedHead& head_of(const unsigned char* data) {
    return *reinterpret_cast<SharedHead*>(const_cast<unsigned char*>(data) - SharedAllocation::kHead);
}

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
        HostWindow window;       // of another process
        bool is_used = true;
    };
    static Opened try_open(const GpuAddress& address);
    static void open_on_gpu(Opened& opened);
    static void open_on_host(Opened& opened);
    static void close(const Opened& opened);

    std::vector<Opened> opened_;
};

}  // namespace mlff::gpu
