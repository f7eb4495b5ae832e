// SPDX-License-Identifier: MIT
// Which outputs and hidden units of a readout belong to a head.
#pragma once

#include <cstddef>

#include "mace/weights/weights.h"

namespace mlff::mace {

// The output column that is the energy of this head.
inline int column_of(const Readout& readout, int head) { return readout.column_count() == 1 ? 0 : head; }

// True if a hidden unit belongs to another head: with several heads, hidden units are split into equal slices.
inline bool is_masked(const Readout& readout, int head, size_t hidden, size_t hidden_count) {
    if (readout.head_slices <= 1) return false;
    return hidden * static_cast<size_t>(readout.head_slices) / hidden_count != static_cast<size_t>(head);
}

}  // namespace mlff::mace
