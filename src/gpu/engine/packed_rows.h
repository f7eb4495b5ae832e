// SPDX-License-Identifier: MIT
// Rows of some atoms, one behind the other in the order in which others want them, and the reverse for ghosts. For CUDA
// sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::gpu {

// A row among those that another domain has packed, which it does in two places by turns.
struct RowPlace {
    const unsigned char* first[2] = {};
    int64_t index = 0;
};

// Rows that were received: packed here, or where each of them is and whose turn it is.
struct ReceivedRows {
    const void* packed = nullptr;
    const RowPlace* places = nullptr;
    int turn = 0;
};

// packed[i] = rows[atoms[i]]. Rows are multiples of 4 bytes.
void pack_rows(const int32_t* atoms, int64_t count, int64_t row_bytes, const void* rows, void* packed,
               cudaStream_t stream);

// rows[owned_count + i] = row sources[i] of those received or, for a source below zero, that of own atom -1 - source.
void unpack_rows(const int32_t* sources, int64_t count, int64_t row_bytes, int64_t owned_count,
                 const ReceivedRows& received, void* rows, cudaStream_t stream);

}  // namespace mlff::gpu
