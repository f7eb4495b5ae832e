// SPDX-License-Identifier: MIT
// Where other processes of the same machine find memory of a GPU.
#pragma once

#include <cstdint>

namespace mlff {

struct GpuAddress {
    unsigned char handle[64] = {};  // CUDA's, for other processes; all zero: there is none
    uint64_t machine = 0;           // since it was started
    uint64_t process = 0;
    uint64_t place = 0;  // in the memory of that process
    uint64_t token = 0;  // is at the beginning of the memory, so that one who reads it knows that it is the right one

    bool operator==(const GpuAddress&) const = default;
};

}  // namespace mlff
