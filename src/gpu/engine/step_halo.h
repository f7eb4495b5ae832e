// SPDX-License-Identifier: MIT
// Fills the rows (features or gradients) of ghosts during a step. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::gpu {

struct HaloSize {
    int64_t sent = 0, received = 0;  // rows

    bool covers(const HaloSize& other) const { return sent >= other.sent && received >= other.received; }
};

class StepHalo {
public:
    virtual ~StepHalo() = default;
    // Overwrites the rows of ghosts with those of their owners. `rows` is [atom][row_bytes] on the device; row_bytes is
    // a multiple of 4. Waits for the stream.
    virtual void fill(void* rows, int64_t row_bytes, cudaStream_t stream) = 0;

    // Adds the rows of ghosts to those of the atoms that they copy, in an order that depends on the halo only. `rows`
    // is [atom][row_size], row_size a multiple of 4. Only if can_add_back(), which is the same in all domains.
    virtual bool can_add_back() const = 0;
    virtual void add_back(float* rows, int64_t row_size, cudaStream_t stream) = 0;
};

}  // namespace mlff::gpu
