// SPDX-License-Identifier: MIT
// Relaxations that run as one batch. What is finished leaves, and others may take its place.
#pragma once

#include <optional>
#include <vector>

#include "dynamics/batch_forces.h"
#include "dynamics/relaxation.h"

namespace mlff {

class RelaxationBatch {
public:
    struct Member {
        int64_t id = 0;
        Relaxation relaxation;
        std::optional<Error> error;  // it could not go on
        BatchAnswer answer;

        bool is_done() const { return error || relaxation.is_finished(); }
    };

    // `forces` must outlive this. Those that are done leave when they have `least_turnover` of the atoms, or all are
    // done. On a GPU a batch that stays the same keeps its neighbour candidates and its CUDA graph, which is worth more
    // than what the passengers cost.
    explicit RelaxationBatch(BatchForces& forces, double least_turnover = 0)
        : forces_(forces), least_turnover_(least_turnover) {}

    void add(int64_t id, Relaxation relaxation);
    bool is_empty() const { return members_.empty(); }
    int64_t atom_count() const { return atom_count_; }
    // Evaluates all members and moves those that are not done. Returns those that leave, in the order of add().
    std::vector<Member> step();
    // Ends those with larger ids.
    void drop_after(int64_t id);

private:
    void count_atoms();

    BatchForces& forces_;
    double least_turnover_;
    std::vector<Member> members_;
    int64_t atom_count_ = 0;
    std::vector<SystemView> systems_;
    std::vector<BatchAnswer*> answers_;
};

// Until all are finished. Throws the error of the first that fails.
void relax_together(BatchForces& forces, std::span<Relaxation> relaxations);
void relax_together(Session& session, std::span<Relaxation> relaxations);

}  // namespace mlff
