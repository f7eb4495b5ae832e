// SPDX-License-Identifier: MIT
// A capability of evaluators: many small systems at once, which is faster than one after the other.
#pragma once

#include <span>

#include "potential/evaluator.h"

namespace mlff {

class BatchEvaluation {
public:
    virtual ~BatchEvaluation() = default;
    // Whether `next` may be in the same batch as `first`.
    virtual bool can_batch(const SystemView& first, const SystemView& next) const = 0;
    // Atoms of a batch: enough to keep the device busy.
    virtual int64_t most_batch_atoms() const { return 512; }
    // Whether evaluate_batch() reads `edges` for these systems, and Edges::reverse in them.
    virtual bool needs_batch_edges(std::span<const SystemView> systems) const {
        (void)systems;
        return true;
    }
    virtual bool needs_reverse_edges() const { return false; }
    // The same results as evaluate() for each of the systems. `edges` uses one index range for the atoms of all.
    virtual void evaluate_batch(std::span<const SystemView> systems, const Edges& edges,
                                std::span<const Outputs> outputs, ThreadTeam& team) = 0;
};

}  // namespace mlff
