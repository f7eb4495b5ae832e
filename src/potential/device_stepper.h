// SPDX-License-Identifier: MIT
// Dynamics that stay on the GPU. An evaluator computes forces, a motion moves the atoms. A step of both is one launch
// of a CUDA graph, without host synchronisation.
#pragma once

#include <cstdint>
#include <vector>

#include "core/system_view.h"
#include "core/threads.h"
#include "potential/outputs.h"

namespace mlff {

// Results of a step, in device memory.
struct DeviceStepResults {
    const double* forces = nullptr;  // [atom][3]
    const double* totals = nullptr;  // energy, virial[3][3]; the virial only if it was asked for
    // If one of these is not 0, the results are invalid.
    const int64_t* search_needed = nullptr;  // atoms have moved too far for the neighbour candidates
    const int32_t* short_edge = nullptr;     // two atoms are closer than the model allows
    const TrustReading* trust = nullptr;     // nullptr: not measured in this step
};

// What a step computes besides energy and forces. Steps with the same wishes are the same graph.
struct DeviceStepWishes {
    bool virial = false;
    bool trust = false;  // for models with a trust meter
};

// Moves atoms. It enqueues the same kernels with the same arguments in every step, so that they can be captured in a
// CUDA graph.
class DeviceMotion {
public:
    virtual ~DeviceMotion() = default;
    virtual int64_t id() const = 0;               // unique in the process
    virtual const double* positions() const = 0;  // [atom][3], on the device; always the same address
    virtual void enqueue_move(void* stream) = 0;  // before the forces
    virtual void enqueue_finish(const DeviceStepResults& results, void* stream) = 0;  // after them
};

// Made by an evaluator. It does not read `system.positions`, but the positions of the motion. Only neighbour searches
// wait for the GPU.
class DeviceStepper {
public:
    virtual ~DeviceStepper() = default;
    virtual int device() const = 0;
    virtual void* stream() const = 0;  // a cudaStream_t

    // Memory on the device for a motion, which counts with that of the steps, for the limit of the session too. Throws
    // Error{memory} if there is no room for both. To be asked before it is taken: see MotionMemory.
    virtual void admit_motion(int64_t bytes) = 0;
    virtual void forget_motion(int64_t bytes) = 0;

    // Whether there are neighbour candidates for these atoms and this cell. enqueue_step() needs them.
    virtual bool has_neighbors(const SystemView& system) const = 0;
    // Enqueues the move, the selection of edges, the forces and the motion's enqueue_finish().
    virtual void enqueue_step(const SystemView& system, DeviceMotion& motion, const DeviceStepWishes& wishes,
                              ThreadTeam& team) = 0;
    // Searches neighbours at the present positions, then enqueues the forces and enqueue_finish(). Moves nothing.
    virtual void enqueue_searched_step(const SystemView& system, DeviceMotion& motion, const DeviceStepWishes& wishes,
                                       ThreadTeam& team) = 0;

    // Positions and cell of the last neighbour search. Waits for the stream.
    virtual void read_searched(std::vector<double>& positions, Mat3& cell) const = 0;
    // Throws Error{system}: a step found two atoms that are too close.
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
