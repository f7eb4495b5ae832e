// SPDX-License-Identifier: MIT
// The same pair seen from its other end.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/host_device.h"

namespace mlff {

struct EdgeLists {
    const int64_t* first;   // [atom + 1]
    const int32_t* sender;  // [edge]
    const int32_t* shift;   // [edge][3]
};

// The edge of atom sender[edge] that comes from `receiver` with the opposite shift; -1 if there is none.
// The search visits the bins around every atom in the same order, so that the reverse edge is near the mirrored
// place in the list of the sender: looking outwards from there takes few steps.
MLFF_HOST_DEVICE inline int64_t find_reverse_edge(const EdgeLists& lists, int64_t receiver, int64_t edge) {
    const auto is_reverse = [&](int64_t other) {
        const int32_t* s = lists.shift + 3 * edge;
        const int32_t* t = lists.shift + 3 * other;
        return lists.sender[other] == receiver && s[0] == -t[0] && s[1] == -t[1] && s[2] == -t[2];
    };
    const int32_t sender = lists.sender[edge];
    const int64_t begin = lists.first[sender];
    const int64_t end = lists.first[sender + 1];
    const int64_t mirrored = end - 1 - (edge - lists.first[receiver]);
    int64_t low = std::max(begin, std::min(mirrored, end - 1));
    int64_t high = low + 1;
    while (low >= begin || high < end) {
        if (low >= begin && is_reverse(low)) return low;
        if (high < end && is_reverse(high)) return high;
        --low;
        ++high;
    }
    return -1;
}

}  // namespace mlff
