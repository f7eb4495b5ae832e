// SPDX-License-Identifier: MIT
// Stochastic velocity rescaling (Bussi, Donadio and Parrinello 2007): all velocities are scaled so that the kinetic energy relaxes to its mean and
// fluctuates as in the canonical ensemble. Once a step, after velocity Verlet.
#pragma once

#include "dynamics/thermostat.h"

namespace mlff {

class VelocityRescaling : public Thermostat {
public:
    VelocityRescaling(const ThermostatOptions& options, int64_t degrees_of_freedom, double time_step);
    double end_step(Particles& particles, int64_t step) override;

private:
    double kept_;    // of the kinetic energy, over a step
    double target_;  // mean kinetic energy of a degree of freedom, eV
    int64_t degrees_;
    uint64_t seed_;
};

}  // namespace mlff
