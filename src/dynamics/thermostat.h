// SPDX-License-Identifier: MIT
// The interface of thermostats. A step of dynamics calls it at three places; each thermostat uses those it needs.
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
    // Change velocities. Return the increase of the kinetic energy, eV.
    virtual double begin_step(Particles&, int64_t) { return 0; }  // before the first kick
    virtual double half_way(Particles&, int64_t) { return 0; }    // between the two half drifts
    virtual double end_step(Particles&, int64_t) { return 0; }    // after the last kick
    virtual std::span<double> state() { return {}; }              // all variables except particles and step number
};

// nullptr for Kind::none. Throws Error{argument} for invalid options, or if the atoms are at rest and the thermostat
// cannot set them in motion.
std::unique_ptr<Thermostat> make_thermostat(const ThermostatOptions& options, const Particles& particles,
                                            double time_step);

}  // namespace mlff
