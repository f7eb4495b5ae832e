// SPDX-License-Identifier: MIT
#include "gpu/engine/step_dynamics.h"

#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {

void StepDynamics::admit_motion(int64_t bytes) {
    const CurrentDevice current(device_);
    run_.memory().admit_beside(bytes, run_.neighbors().held_bytes());
}

bool StepDynamics::has_neighbors(const SystemView& system) const {
    return run_.atoms().holds({&system, 1}, system.atom_count) && run_.neighbors().can_reuse(system);
}

void StepDynamics::enqueue_step(const SystemView& system, DeviceMotion& motion, const DeviceStepWishes& wishes,
                                ThreadTeam& team) {
    enqueue(system, motion, wishes, false, team);
}

void StepDynamics::enqueue_searched_step(const SystemView& system, DeviceMotion& motion, const DeviceStepWishes& wishes,
                                         ThreadTeam& team) {
    enqueue(system, motion, wishes, true, team);
}

void StepDynamics::enqueue(const SystemView& system, DeviceMotion& motion, const DeviceStepWishes& wishes,
                           bool searches, ThreadTeam& team) {
    const CurrentDevice current(device_);
    run_.leave_nothing_running([&] {
        const Wanted wanted = {.forces = true, .virial = wishes.virial, .trust = wishes.trust};
        run_.begin({.atoms = system.atom_count, .wanted = wanted, .to_host = false});
        run_.set_atoms({&system, 1});
        run_.prepare(system, team);
        StepKind kind = {.reuses_candidates = !searches, .size = run_.pending(), .motion = &motion};
        if (searches) run_.search(system, motion.positions());
        run_.use_neighbors(kind.size);
        run_.launch(kind);
    });
}

void StepDynamics::read_searched(std::vector<double>& positions, Mat3& cell) const {
    const CurrentDevice current(device_);
    positions.resize(static_cast<size_t>(3 * run_.atoms().atom_count()));
    cell = run_.neighbors().searched_cell();
    if (positions.empty()) return;
    check(cudaMemcpyAsync(positions.data(), run_.neighbors().searched_positions(), positions.size() * sizeof(double),
                          cudaMemcpyDeviceToHost, run_.stream()),
          "copying positions");
    check(cudaStreamSynchronize(run_.stream()), "copying positions");
}

}  // namespace mlff::gpu
