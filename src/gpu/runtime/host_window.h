// SPDX-License-Identifier: MIT
// Pinned host memory that several processes of one machine map: a GPU copies to and from it without a copy by the CPU.
// It has no name in a file system, so nothing is left of it when the last process that maps it has ended. For CUDA
// sources only.
#pragma once

#include <cstdint>

namespace mlff::gpu {

class HostWindow {
public:
    // Where other processes find it. Plain bytes, for a GpuAddress.
    struct Place {
        int64_t process = 0, file = 0, bytes = 0;
    };

    HostWindow() = default;
    HostWindow(int64_t bytes, const char* purpose);  // new memory, all zero
    // Maps that of another process, which must still have it. Throws Error{device} with the reason if it cannot.
    explicit HostWindow(const Place& place);
    HostWindow(HostWindow&& other) noexcept;
    HostWindow& operator=(HostWindow&& other) noexcept;
    ~HostWindow();

    unsigned char* data() const { return first_; }
    const Place& place() const { return place_; }

private:
    void map(int file);

    unsigned char* first_ = nullptr;
    int file_ = -1;  // of its own memory
    Place place_;
};

}  // namespace mlff::gpu
