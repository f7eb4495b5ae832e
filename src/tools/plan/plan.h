// SPDX-License-Identifier: MIT
// Plans a run: memory needed, memory available, and the expected time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/session.h"
#include "tools/plan/calibration.h"

namespace mlff::plan {

// The key of a calibration for this session on this machine. `model_id`: SHA-256 of the file, or the name of a model
// without a file.
CalibrationKey key_of(const Session& session, const std::string& model_id, bool exact_radial);

// The number of edges within a radius, counted by the neighbour list. Takes 4 bytes of memory per two edges.
int64_t count_edges(const SystemView& system, double radius, ThreadTeam& team);

// Memory of the session's device for a number of atoms at a given density.
struct MemoryPlan {
    double needed_bytes = 0, available_bytes = 0;  // available 0: unknown
    int64_t largest_atoms = 0;                     // number of atoms that fit
    bool fits() const { return available_bytes <= 0 || needed_bytes <= available_bytes; }
};

// From a calibration. If the session runs on the host, the memory of the process counts too.
MemoryPlan plan_memory(const Calibration& calibration, const Load& load, double available_bytes);
// From a function: `bytes_of(atoms)` must grow with the number of atoms.
MemoryPlan plan_memory(const std::function<double(int64_t)>& bytes_of, int64_t atoms, double available_bytes);

// For a GPU, where the session knows its buffers: evaluates single atoms of the system's elements, then computes what
// the whole system would take. `limit_bytes`: for atoms and edges, as in SessionOptions; 0 = none.
struct GpuMemory {
    MemoryPlan plan;         // needed: the minimum with which it runs
    double usual_bytes = 0;  // if there is enough memory
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
