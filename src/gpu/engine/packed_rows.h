// SPDX-License-Identifier: MIT
// Packs rows (features or gradients) of own atoms for other domains, and unpacks rows for ghosts. For CUDA sources
// only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::gpu {

// Where another domain has packed a row. It packs into two buffers alternately.
struct RowPlace {
    const unsigned char* first[2] = {};  // [turn]: the buffer
    int64_t index = 0;                   // of the row
};

// Received rows: either packed in memory of this GPU, or the place of each row and the buffer to read.
struct ReceivedRows {
    const void* packed = nullptr;
    const RowPlace* places = nullptr;
    int turn = 0;
};

// packed[i] = rows[atoms[i]]. The row size is a multiple of 4 bytes.
void pack_rows(const int32_t* atoms, int64_t count, int64_t row_bytes, const void* rows, void* packed,
               cudaStream_t stream);

// rows[owned_count + i] = received row sources[i] or, if sources[i] < 0, the row of own atom -1 - sources[i].
void unpack_rows(const int32_t* sources, int64_t count, int64_t row_bytes, int64_t owned_count,
                 const ReceivedRows& received, void* rows, cudaStream_t stream);

}  // namespace mlff::gpu
