// SPDX-License-Identifier: MIT
// The caller's candidates on the GPU, in the form of CandidateSearch. First those of the atoms with a list, as given;
// then those of the other atoms (ghosts), which are the atoms that list them. Sites are in the order of the atoms.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>

#include "gpu/neighbors/candidate_search.h"
#include "gpu/runtime/device_buffer.h"
#include "neighbors/listed_by.h"

namespace mlff::gpu {

class ListedCandidates {
public:
    // `admit` is called with the number of candidates before memory for them is allocated. Waits for the stream. Throws
    // Error{argument} for a malformed list, and if only one of two atoms with a list lists the other.
    void set(int64_t atom_count, const ListedNeighbors& list, const std::function<void(int64_t)>& admit,
             cudaStream_t stream);

    int64_t total() const { return candidates_.size(); }
    const int64_t* first() const { return first_.data(); }              // [atom + 1]
    const Candidate* candidates() const { return candidates_.data(); }  // [candidate]
    const int32_t* reverse() const { return reverse_.data(); }          // [candidate], as CandidateSearch::reverse
    Site* sites() const { return sites_.data(); }                       // [atom]; positions are not set

    // Calls visit(buffer, numbers per candidate).
    template <class Visit>
    void for_each_array(const Visit& visit) {
        visit(listed_, 1);
        visit(candidates_, 1);
        visit(reverse_, 1);
    }

private:
    ListedBy listed_by_;
    DeviceBuffer<int64_t> first_;
    DeviceBuffer<int32_t> listed_, reverse_;
    DeviceBuffer<Candidate> candidates_;
    DeviceBuffer<Site> sites_;
    DeviceBuffer<int64_t> one_way_;  // [1]: a pair listed in one direction only; -1: none
};

}  // namespace mlff::gpu
