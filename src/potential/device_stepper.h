// SPDX-License-Identifier: MIT
// Dynamics that stay on the GPU: an evaluator computes forces, a motion moves the atoms, and a step of both is one
// graph launch that nobody waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "core/system_view.h"
#include "core/threads.h"

namespace mlff {

// Where the results of a step are, on the device.
struct DeviceStepResults {
    const double* forces = nullptr;  // [atom][3]
    const double* totals = nullptr;  // energy, virial[3][3]; the virial if it was wanted
    const int64_t* search_needed =
        nullptr;  // not 0: atoms have moved too far for the neighbours that are known, and the results are void
    const int32_t* short_edge =
        nullptr;  // not 0: two atoms are nearer than the model can take, and the results are void
};

// What moves atoms. All that it enqueues may be captured in a graph: the same kernels with the same arguments in every
// step.
class DeviceMotion {
public:
    virtual ~DeviceMotion() = default;
    virtual int64_t id() const = 0;               // no two motions of a program have the same
    virtual const double* positions() const = 0;  // [atom][3], on the device; always the same address
    virtual void enqueue_move(void* stream) = 0;  // before the forces
    virtual void enqueue_finish(const DeviceStepResults& results, void* stream) = 0;  // after them
};

// Made by an evaluator. `system.positions` is not read: positions are those of the motion. Nothing waits for the GPU
// but searches.
class DeviceStepper {
public:
    virtual ~DeviceStepper() = default;
    virtual int device() const = 0;
    virtual void* stream() const = 0;  // a cudaStream_t

    // Memory on the device for a motion, which counts with that of the steps, for the limit of the session too. Throws
    // Error{memory} if there is no room for both. To be asked before it is taken: see MotionMemory.
    virtual void admit_motion(int64_t bytes) = 0;
    virtual void forget_motion(int64_t bytes) = 0;

    // Whether neighbours of these atoms in this cell are known, so that enqueue_step() may be used.
    virtual bool has_neighbors(const SystemView& system) const = 0;
    // Move, neighbours, forces, finish.
    virtual void enqueue_step(const SystemView& system, DeviceMotion& motion, bool wants_virial, ThreadTeam& team) = 0;
    // Searches neighbours where the atoms are now; forces, finish.
    virtual void enqueue_searched_step(const SystemView& system, DeviceMotion& motion, bool wants_virial,
                                       ThreadTeam& team) = 0;

    // Where atoms were, and their cell, when neighbours were last searched. Waits for the stream.
    virtual void read_searched(std::vector<double>& positions, Mat3& cell) const = 0;
    // Throws Error{system}: a step found two atoms that are too near.
    [[noreturn]] virtual void refuse_short_edges() const = 0;
};

// Counts the memory of a motion for as long as it lives.
class MotionMemory {
public:
    MotionMemory(DeviceStepper& stepper, int64_t bytes) : stepper_(stepper), bytes_(bytes) {
        stepper.admit_motion(bytes);
    }
    MotionMemory(const MotionMemory&) = delete;
    MotionMemory& operator=(const MotionMemory&) = delete;
    ~MotionMemory() { stepper_.forget_motion(bytes_); }

private:
    DeviceStepper& stepper_;
    int64_t bytes_;
};

}  // namespace mlff
