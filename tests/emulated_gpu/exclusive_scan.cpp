// SPDX-License-Identifier: MIT
// gpu/neighbors/exclusive_scan.cu for the emulated GPU, whose launches are done when they return.
#include "gpu/neighbors/exclusive_scan.h"

namespace mlff::gpu {

ExclusiveScan::ExclusiveScan() = default;

template <class Sum>
void ExclusiveScan::scan(const int32_t* counts, int64_t count, Sum* sums, cudaStream_t) const {
    Sum sum = 0;
    for (int64_t i = 0; i < count; ++i) {
        sums[i] = sum;
        sum += counts[i];
    }
}
void ExclusiveScan::run(const int32_t* counts, int64_t count, int32_t* sums, cudaStream_t stream) const {
    scan(counts, count, sums, stream);
}
void ExclusiveScan::run(const int32_t* counts, int64_t count, int64_t* sums, cudaStream_t stream) const {
    scan(counts, count, sums, stream);
}

}  // namespace mlff::gpu
