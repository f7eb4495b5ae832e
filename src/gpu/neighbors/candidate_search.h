// SPDX-License-Identifier: MIT
// Finds the pairs of SortedSites within the reach of the grid, and a few barely beyond it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/neighbors/exclusive_scan.h"
#include "gpu/neighbors/sorted_sites.h"
#include "gpu/runtime/device_buffer.h"
#include "neighbors/stencil.h"

namespace mlff::gpu {

struct Candidate {
    int32_t sender;  // sorted index
    uint32_t image;  // packed
};

class CandidateSearch {
public:
    // Counts, scans and fills. `half` and `want_reverse` as in NeighborOptions. `admit` is called with the number of
    // candidates before memory for them is allocated. Waits for the stream once.
    void find(const SortedSites& sites, bool half, bool want_reverse, const std::function<void(int64_t)>& admit,
              cudaStream_t stream);

    int64_t total() const { return candidates_.size(); }
    const int64_t* first() const { return first_.data(); }              // [sorted atom + 1]
    const Candidate* candidates() const { return candidates_.data(); }  // in the order of the CPU's search
    // [candidate]: the index of the same pair among the sender's candidates. Every pair within the reach has one.
    // Barely beyond the reach, rounding may have dropped one direction; then it is -1.
    const int32_t* reverse() const { return reverse_.data(); }

    // Calls visit(buffer, numbers per candidate).
    template <class Visit>
    void for_each_array(bool want_reverse, const Visit& visit) {
        visit(candidates_, 1);
        if (want_reverse) visit(reverse_, 1);
    }

private:
    std::vector<StencilRow> stencil_;
    DeviceBuffer<StencilRow> device_stencil_;
    DeviceBuffer<int32_t> count_;  // [sorted atom + 1], the last is 0
    DeviceBuffer<int64_t> first_;
    DeviceBuffer<Candidate> candidates_;
    DeviceBuffer<int32_t> reverse_;
    PinnedValue<int64_t> total_;
    ExclusiveScan scan_;
};

}  // namespace mlff::gpu
