// SPDX-License-Identifier: MIT
// Identifies memory of a GPU, or host memory that a GPU copies to and from, for other processes on the same machine.
#pragma once

#include <cstdint>

namespace mlff {

struct GpuAddress {
    unsigned char handle[64] = {};  // CUDA's IPC handle, or the HostWindow::Place; all zero: none
    uint64_t machine = 0;           // identifies the machine since its last boot
    uint64_t process = 0;
    uint64_t place = 0;    // address in that process
    uint64_t token = 0;    // also stored at the start of the memory; lets a reader verify that it opened the right one
    uint64_t is_host = 0;  // 1: a HostWindow

    bool operator==(const GpuAddress&) const = default;
};

}  // namespace mlff
