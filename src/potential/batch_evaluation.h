// SPDX-License-Identifier: MIT
// A capability of evaluators: to evaluate many small systems at once, which is faster than one after the other.
#pragma once

#include <span>

#include "potential/evaluator.h"

namespace mlff {

class BatchEvaluation {
public:
    virtual ~BatchEvaluation() = default;
    virtual bool can_batch(const SystemView& first, const SystemView& next) const = 0;
    // The largest number of atoms in a batch. It is enough to keep the device busy.
    virtual int64_t most_batch_atoms() const { return 512; }
    // Whether evaluate_batch() reads `edges` for these systems. If not, it is called with Edges{}.
    virtual bool needs_batch_edges(std::span<const SystemView> systems) const {
        (void)systems;
        return true;
    }
    virtual bool needs_reverse_edges() const { return false; }  // whether it reads Edges::reverse
    // Gives the same results as evaluate() for each system. In `edges` the atoms of all systems are numbered
    // consecutively.
    virtual void evaluate_batch(std::span<const SystemView> systems, const Edges& edges,
                                std::span<const Outputs> outputs, ThreadTeam& team) = 0;
};

}  // namespace mlff
