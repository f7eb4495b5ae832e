// SPDX-License-Identifier: MIT
// One run of dynamics and its observations. If a run becomes unstable, it ends and reports how: that is a finding, not
// an error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dynamics/molecular_dynamics.h"

namespace mlff::validate {

struct Snapshot {
    int64_t step = 0;
    std::vector<double> positions, forces;  // [atom][3], angstrom and eV/angstrom; positions are not wrapped
    double potential_energy = 0;            // eV
};

struct BlowUp {
    std::string phase;  // "the relaxation", "NVT", "NVE"
    int64_t step = 0;
    std::string reason;
    std::string closest_pair;  // "atoms 3 (O) and 7 (H), 0.412 A apart"

    std::string sentence() const;
};

struct RunOptions {
    std::string phase;
    int64_t step_count = 0;
    double time_step = 0;  // fs
    std::optional<LangevinBath> bath;
    int64_t snapshot_interval = 0;                    // steps; 0 = none
    double highest_temperature = 0;                   // K; above this the run counts as unstable
    std::function<void(int64_t steps_done)> on_step;  // may be empty
};

struct Run {
    std::string phase;
    double time_step = 0;
    double friction = 0;  // 1/fs, of the bath; 0 = none
    // One entry for each step, eV.
    std::vector<double> total_energy, kinetic_energy;
    std::vector<int32_t> elements;                            // ascending
    std::vector<std::vector<double>> element_kinetic_energy;  // [element][step]
    // The largest change since the start, relative to the sum of the absolute momenta or angular momenta of the atoms.
    double momentum_change = 0, angular_momentum_change = 0;
    std::vector<Snapshot> snapshots;
    Particles last;
    std::optional<BlowUp> blow_up;
};

Run run_dynamics(Session& session, const Particles& start, const RunOptions& options);

// Steepest descent with short moves: removes the largest forces from a structure that is not relaxed in this model.
std::optional<BlowUp> relax(Session& session, Particles& particles, int step_count);

// The closest pair as text; "no two atoms are within 3 A" if there is none.
std::string closest_pair(const Particles& particles);

}  // namespace mlff::validate
