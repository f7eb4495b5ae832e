// SPDX-License-Identifier: MIT
// Dynamics of many systems that step together: the forces of a step are one batch. Atoms move on the host, over the
// threads. A system that breaks leaves, and the others go on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dynamics/batch_forces.h"
#include "dynamics/molecular_dynamics.h"

namespace mlff {

// One system: where it begins, or the state from which it goes on.
struct DynamicsStart {
    Particles particles;                 // Particles::rigid_degrees is set from the options
    std::optional<DynamicsState> state;  // instead of the particles
    DynamicsOptions options;
    std::string ended;  // not "": why it left in an earlier part of the run; its particles must still be there
};

class ManyDynamics {
public:
    // Computes the first forces. `forces` must outlive this. A system that cannot begin has ended(). Throws Error for
    // options that make no sense.
    ManyDynamics(BatchForces& forces, std::vector<DynamicsStart> starts, const StabilityLimits& limits);

    // One step of all that have not ended.
    void step();

    size_t size() const { return members_.size(); }
    // nullptr if it never began. Of one that ended, the failed step.
    MolecularDynamics* at(size_t i) { return members_[i].dynamics ? &*members_[i].dynamics : nullptr; }
    const MolecularDynamics* at(size_t i) const { return members_[i].dynamics ? &*members_[i].dynamics : nullptr; }
    const std::string& ended(size_t i) const { return members_[i].ended; }  // why; "" = it goes on
    bool goes_on(size_t i) const { return members_[i].ended.empty(); }
    size_t count_going_on() const;

private:
    // Gives what was computed for all systems before.
    struct GivenForces : ForceProvider {
        BatchAnswer answer;
        int64_t count = 0;
        double compute(const SystemView& system, double* forces, double* virial) override;
        // Every step searches, so no step depends on an older search.
        int64_t search_count() const override { return count; }
    };
    struct Member {
        std::unique_ptr<GivenForces> given = std::make_unique<GivenForces>();
        std::optional<MolecularDynamics> dynamics;
        std::string ended;
    };

    void compute_forces(std::span<const SystemView> systems, const std::vector<size_t>& of);
    // work(i) for these systems, over threads; one that throws Error{system} ends.
    void for_each(const std::vector<size_t>& of, const std::function<void(size_t)>& work);

    BatchForces& forces_;
    std::vector<Member> members_;
    std::vector<size_t> going_;
    std::vector<SystemView> systems_;
    std::vector<BatchAnswer*> answers_;
};

}  // namespace mlff
