// SPDX-License-Identifier: MIT
// Checks the conservation laws of dynamics without a thermostat.
#pragma once

#include <vector>

#include "tools/validate/check.h"
#include "tools/validate/statistics.h"
#include "tools/validate/thresholds.h"
#include "tools/validate/trajectory.h"

namespace mlff::validate {

// A straight line fitted to the total energy over time.
struct EnergyDrift {
    LineFit line;  // eV, eV/fs
    double meV_per_atom_per_ns = 0, meV_per_atom_per_ns_error = 0;
    double percent_of_kinetic_energy = 0;  // change of the line over the run, in % of 3/2 k T per atom
    double fluctuation_meV_per_atom = 0;   // rms about the line
};
EnergyDrift energy_drift(const Run& run, double temperature);

// The power p in  fluctuation ~ (time step)^p, from two runs from the same start; only the time covered by both counts.
// Velocity Verlet has 2. Too long a time step, forces that are not the gradient of the energy, or noise give another
// power.
double time_step_order(const Run& coarse, const Run& fine);

// `fine` is a run with half the time step, for the order.
std::vector<Check> check_energy(const Run& run, const Run& fine, bool is_periodic, double temperature,
                                const Thresholds& thresholds);

}  // namespace mlff::validate
