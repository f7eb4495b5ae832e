// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "device/device_buffer.h"

namespace mlff::cuda {

// sums[i] = counts[0] + ... + counts[i - 1], exactly. Allocates when `count` is larger than ever before.
class ExclusiveScan {
public:
    void run(const int32_t* counts, int64_t count, int32_t* sums, cudaStream_t stream);
    void run(const int32_t* counts, int64_t count, int64_t* sums, cudaStream_t stream);

private:
    template <class Sum>
    void scan(const int32_t* counts, int64_t count, Sum* sums, cudaStream_t stream);

    DeviceBuffer<std::byte> scratch_;
};

}  // namespace mlff::cuda
