// SPDX-License-Identifier: MIT
// Optimisations that can be switched off one by one, so that their gain can be measured (mlff bench --compare). Results
// stay within the bounds of their precision.
#pragma once

namespace mlff {

struct Optimizations {
    bool graphs = true;  // GPU: steps that repeat are launched as one CUDA graph
    bool neighbor_grid =
        true;  // neighbours are searched in bins and kept for later calls; else all pairs, in every call
    bool fused_messages = true;  // GPU: messages are summed without storing what belongs to single edges

    bool operator==(const Optimizations&) const = default;
};

}  // namespace mlff
