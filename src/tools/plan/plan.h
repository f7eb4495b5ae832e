// SPDX-License-Identifier: MIT
// Before running: what will this system need, what is there, and how long will it take?
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/session.h"
#include "tools/plan/calibration.h"

namespace mlff::plan {

// What a calibration of this session on this machine is known by. `model_id`: SHA-256 of the file, or the name of a
// model that has none.
CalibrationKey key_of(const Session& session, const std::string& model_id, bool exact_radial);

// Edges of a system within a radius, counted by the neighbour list. Takes 4 bytes of memory for every second of them.
int64_t count_edges(const SystemView& system, double radius, ThreadTeam& team);

// Memory of the session's device for a number of atoms of one density.
struct MemoryPlan {
    double needed_bytes = 0, available_bytes = 0;  // available 0: not known
    int64_t largest_atoms = 0;                     // that fit
    bool fits() const { return available_bytes <= 0 || needed_bytes <= available_bytes; }
};

// By a calibration; the host's process counts too where that is what the session runs in.
MemoryPlan plan_memory(const Calibration& calibration, const Load& load, double available_bytes);
// By a function that knows: `bytes_of(atoms)` grows with the number of atoms.
MemoryPlan plan_memory(const std::function<double(int64_t)>& bytes_of, int64_t atoms, double available_bytes);

// On a GPU, where the session knows its buffers: it evaluates single atoms of the system's elements, and then says what
// the whole system would take. `limit_bytes`: for atoms and edges, as in SessionOptions; 0 = none.
struct GpuMemory {
    MemoryPlan plan;         // needed: the least with which it runs
    double usual_bytes = 0;  // where there is room
    int64_t edges = 0;       // within forecast_radius()
};
GpuMemory plan_gpu_memory(Session& session, const SystemView& system, int64_t used_before_session, int64_t limit_bytes);

struct TimePlan {
    double evaluation = 0, step = 0;  // seconds
    double steps_per_second() const { return 1 / step; }
    double nanoseconds_per_day(double time_step) const {
        return steps_per_second() * time_step * 1e-6 * 86400;
    }  // time step in fs
};
TimePlan plan_time(const Calibration& calibration, const Load& load);

}  // namespace mlff::plan
