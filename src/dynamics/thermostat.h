// SPDX-License-Identifier: MIT
// What changes velocities so that a run has a temperature. A step of dynamics calls it at three places; each thermostat
// uses those it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "dynamics/particles.h"

namespace mlff {

struct ThermostatOptions {
    enum class Kind { none, langevin, nose_hoover, rescaling };
    Kind kind = Kind::none;
    double temperature = 300;      // K
    double relaxation_time = 100;  // fs; for Langevin the inverse of the friction
    uint64_t seed = 1;
};

class Thermostat {
public:
    virtual ~Thermostat() = default;
    // Change velocities, and return by how much the kinetic energy grew, eV.
    virtual double begin_step(Particles&, int64_t) { return 0; }  // before the first kick
    virtual double half_way(Particles&, int64_t) { return 0; }    // between the two half drifts
    virtual double end_step(Particles&, int64_t) { return 0; }    // after the last kick
    virtual std::span<double> state() { return {}; }  // all that is not in the particles and the step number
};

// nullptr for Kind::none. Throws Error{argument} for options that make no sense, or atoms at rest that a thermostat
// could not set in motion.
std::unique_ptr<Thermostat> make_thermostat(const ThermostatOptions& options, const Particles& particles,
                                            double time_step);

}  // namespace mlff
