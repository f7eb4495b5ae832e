// SPDX-License-Identifier: MIT
// Steps of dynamics on the GPU: move, selection of edges, forces and finish in one graph. For CUDA sources only.
#pragma once

#include "gpu/engine/step_run.h"
#include "potential/device_stepper.h"

namespace mlff::gpu {

class StepDynamics : public DeviceStepper {
public:
    StepDynamics(StepRun& run, int device) : run_(run), device_(device) {}

    int device() const override { return device_; }
    void* stream() const override { return run_.stream(); }
    void admit_motion(int64_t bytes) override;
    void forget_motion(int64_t bytes) override { run_.memory().forget_beside(bytes); }
    bool has_neighbors(const SystemView& system) const override;
    void enqueue_step(const SystemView& system, DeviceMotion& motion, const DeviceStepWishes& wishes,
                      ThreadTeam& team) override;
    void enqueue_searched_step(const SystemView& system, DeviceMotion& motion, const DeviceStepWishes& wishes,
                               ThreadTeam& team) override;
    void read_searched(std::vector<double>& positions, Mat3& cell) const override;
    [[noreturn]] void refuse_short_edges() const override { run_.model().refuse_short_edges(); }

private:
    void enqueue(const SystemView& system, DeviceMotion& motion, const DeviceStepWishes& wishes, bool searches,
                 ThreadTeam& team);

    StepRun& run_;
    int device_;
};

}  // namespace mlff::gpu
