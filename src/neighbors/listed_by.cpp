// SPDX-License-Identifier: MIT
#include "neighbors/listed_by.h"

#include <algorithm>
#include <utility>

namespace mlff {

void ListedBy::find(int64_t atom_count, const ListedNeighbors& list) {
    const int64_t own = list.receiver_count;
    const auto rest = static_cast<size_t>(atom_count - own);
    first_.resize_discard(rest + 1);
    std::fill(first_.begin(), first_.end(), 0);
    const int64_t candidates = list.first[own];
    for (int64_t place = 0; place < candidates; ++place)
        if (list.neighbors[place] >= own) ++first_[static_cast<size_t>(list.neighbors[place] - own)];
    int64_t before = 0;
    for (size_t atom = 0; atom <= rest; ++atom) before += std::exchange(first_[atom], before);
    neighbors_.resize_discard(static_cast<size_t>(first_[rest]));
    // While its list is filled, each start index moves to that of the next list.
    for (int64_t atom = 0; atom < own; ++atom)
        for (int64_t place = list.first[atom]; place < list.first[atom + 1]; ++place)
            if (list.neighbors[place] >= own)
                neighbors_[static_cast<size_t>(first_[static_cast<size_t>(list.neighbors[place] - own)]++)] =
                    static_cast<int32_t>(atom);
    for (size_t atom = rest; atom > 0; --atom) first_[atom] = first_[atom - 1];
    first_[0] = 0;
}

}  // namespace mlff
