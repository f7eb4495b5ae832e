// SPDX-License-Identifier: MIT
// Rows that go from ghosts back to the atoms that they copy: gradients, which are added up in an order that depends on
// the halo only. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/packed_rows.h"
#include "gpu/runtime/device_buffer.h"
#include "potential/domain.h"

namespace mlff::gpu {

class ReturnedRows {
public:
    void set(const Halo& halo, int64_t owned_count, cudaStream_t stream);

    // Rows are [atom][row_size], row_size a multiple of 4.
    // packed[i] = the sum over the ghosts whose source is received row i.
    void pack(const float* rows, int64_t row_size, float* packed, cudaStream_t stream) const;
    // Adds to the rows of own atoms those of their images here, then those that other domains return for Halo::sent.
    void add(const ReceivedRows& returned, float* rows, int64_t row_size, cudaStream_t stream) const;

private:
    int64_t owned_count_ = 0, received_count_ = 0, reached_count_ = 0;
    DeviceBuffer<int32_t> first_ghost_, ghosts_;                    // of received rows
    DeviceBuffer<int32_t> reached_atoms_, first_addend_, addends_;  // own atoms with ghosts; -1 - ghost, or sent row
};

}  // namespace mlff::gpu
