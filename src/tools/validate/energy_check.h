// SPDX-License-Identifier: MIT
// Conservation laws of dynamics without a thermostat.
#pragma once

#include <vector>

#include "tools/validate/check.h"
#include "tools/validate/statistics.h"
#include "tools/validate/thresholds.h"
#include "tools/validate/trajectory.h"

namespace mlff::validate {

// The straight line through the total energy over time.
struct EnergyDrift {
    LineFit line;  // eV, eV/fs
    double meV_per_atom_per_ns = 0, meV_per_atom_per_ns_error = 0;
    double percent_of_kinetic_energy = 0;  // change of the line over the whole run, of 3/2 k T for each atom
    double fluctuation_meV_per_atom = 0;   // rms about the line
};
EnergyDrift energy_drift(const Run& run, double temperature);

// The power p in fluctuation ~ (time step)^p, from two runs over the same time and from the same start. Of the longer
// run only that time counts. Velocity Verlet has 2; steps that are too long, forces that are not the slope of the
// energy, or noise, have not.
double time_step_order(const Run& coarse, const Run& fine);

// `fine` is a run of half the time step, for the order.
std::vector<Check> check_energy(const Run& run, const Run& fine, bool is_periodic, double temperature,
                                const Thresholds& thresholds);

}  // namespace mlff::validate
