// SPDX-License-Identifier: MIT
#include "neighbors/gpu/exclusive_scan.h"

#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

namespace mlff::cuda {

// The initial value sets the type in which cub adds.
template <class Sum>
void ExclusiveScan::scan(const int32_t* counts, int64_t count, Sum* sums, cudaStream_t stream) {
    const auto call = [&](void* scratch, size_t& bytes) {
        return cub::DeviceScan::ExclusiveScan(scratch, bytes, counts, sums, ::cuda::std::plus<>{}, Sum{0}, count, stream);
    };
    size_t bytes = 0;
    check(call(nullptr, bytes), "planning a scan");
    scratch_.resize_discard(static_cast<int64_t>(bytes), "sums");
    check(call(scratch_.data(), bytes), "a scan");
}

void ExclusiveScan::run(const int32_t* counts, int64_t count, int32_t* sums, cudaStream_t stream) {
    scan(counts, count, sums, stream);
}
void ExclusiveScan::run(const int32_t* counts, int64_t count, int64_t* sums, cudaStream_t stream) {
    scan(counts, count, sums, stream);
}

}  // namespace mlff::cuda
