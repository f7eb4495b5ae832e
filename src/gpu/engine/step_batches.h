// SPDX-License-Identifier: MIT
// Evaluates a batch of small systems as one step. For CUDA sources only.
#pragma once

#include "gpu/engine/placement.h"
#include "gpu/engine/step_run.h"
#include "gpu/engine/uploaded_edges.h"
#include "potential/batch_evaluation.h"

namespace mlff::gpu {

class StepBatches : public BatchEvaluation {
public:
    StepBatches(StepRun& run, int device);

    bool can_batch(const SystemView& first, const SystemView& next) const override;
    int64_t most_batch_atoms() const override { return most_atoms_; }
    bool needs_reverse_edges() const override { return true; }
    // Non-periodic systems are placed side by side, and the GPU finds their neighbours.
    bool needs_batch_edges(std::span<const SystemView> systems) const override {
        return !Placement::is_possible(systems);
    }
    void evaluate_batch(std::span<const SystemView> systems, const Edges& edges, std::span<const Outputs> outputs,
                        ThreadTeam& team) override;

private:
    void compute_side_by_side(std::span<const SystemView> systems, const Wanted& wanted, ThreadTeam& team);
    void compute_with_edges(std::span<const SystemView> systems, const Edges& edges, const Wanted& wanted,
                            ThreadTeam& team);

    StepRun& run_;
    int device_;
    // A power of two, from the size of the memory and not from what is free now: the last bits of results depend on how
    // systems are grouped, and should not depend on what else runs on the GPU.
    int64_t most_atoms_;
    UploadedEdges uploaded_;
    Placement placement_;
    int64_t placed_build_ = -1;  // build_count() of the neighbour list when the places were chosen
};

}  // namespace mlff::gpu
