// SPDX-License-Identifier: MIT
// Friction and noise between the half drifts: BAOAB (Leimkuhler and Matthews 2013).
#pragma once

#include "dynamics/thermostat.h"

namespace mlff {

class Langevin : public Thermostat {
public:
    Langevin(const ThermostatOptions& options, double time_step);
    double half_way(Particles& particles, int64_t step) override;

private:
    double kept_;      // of a velocity, over a step
    double variance_;  // of the noise, for a mass of 1 u
    uint64_t seed_;
};

}  // namespace mlff
