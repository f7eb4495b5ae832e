// SPDX-License-Identifier: MIT
// Exclusive prefix sums of counts on the GPU. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/runtime/device_buffer.h"

namespace mlff::gpu {

// sums[i] = counts[0] + ... + counts[i - 1] for i < count. Allocates nothing after the constructor.
class ExclusiveScan {
public:
    ExclusiveScan();
    void run(const int32_t* counts, int64_t count, int32_t* sums, cudaStream_t stream) const;
    void run(const int32_t* counts, int64_t count, int64_t* sums, cudaStream_t stream) const;

private:
    template <class Sum>
    void scan(const int32_t* counts, int64_t count, Sum* sums, cudaStream_t stream) const;

    DeviceBuffer<int64_t> chunk_totals_;
};

}  // namespace mlff::gpu
