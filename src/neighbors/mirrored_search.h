// SPDX-License-Identifier: MIT
// Finding the same pair in the list of its other end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/host_device.h"

namespace mlff {

// The place in begin ... end - 1 for which matches(place) holds; -1 if there is none. `offset` is that of the pair in the
// list of its own atom. The search visits the bins around every atom in the same order, so that the other end has the
// pair near the mirrored place: looking outwards from there takes few steps.
template <class Matches>
MLFF_HOST_DEVICE int64_t find_mirrored(int64_t begin, int64_t end, int64_t offset, const Matches& matches) {
    int64_t low = std::max(begin, end - 1 - offset);
    int64_t high = low + 1;
    while (low >= begin || high < end) {
        if (low >= begin && low < end && matches(low)) return low;
        if (high < end && matches(high)) return high;
        --low;
        ++high;
    }
    return -1;
}

}  // namespace mlff
