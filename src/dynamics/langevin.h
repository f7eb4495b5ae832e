// SPDX-License-Identifier: MIT
// Langevin thermostat: friction and noise between the half drifts, as in BAOAB (Leimkuhler and Matthews 2013).
#pragma once

#include <cmath>

#include "dynamics/counter_random.h"
#include "dynamics/thermostat.h"
#include "dynamics/units.h"

namespace mlff {

// The effect of the bath on one atom. CPU and GPU use the same code.
struct LangevinKick {
    double kept = 1;      // part of a velocity kept over a step
    double variance = 0;  // of the noise, for a mass of 1 u
    uint64_t seed = 0;

    LangevinKick() = default;
    LangevinKick(const ThermostatOptions& options, double time_step)
        : kept(std::exp(-time_step / options.relaxation_time)),
          variance((1 - kept * kept) * kBoltzmann * options.temperature * kAccelerationUnit),
          seed(options.seed) {}

    // Changes a velocity. Returns the increase of m v^2, u angstrom^2/fs^2.
    MLFF_HOST_DEVICE double apply(double* velocity, double mass, int64_t step, int64_t atom) const {
        const std::array<double, 3> normal =
            random_normals(seed, static_cast<uint64_t>(step), static_cast<uint64_t>(atom));
        const double spread = std::sqrt(variance / mass);
        double growth = 0;
        for (int k = 0; k < 3; ++k) {
            const double before = velocity[k] * velocity[k];
            velocity[k] = kept * velocity[k] + spread * normal[static_cast<size_t>(k)];
            growth += mass * (velocity[k] * velocity[k] - before);
        }
        return growth;
    }
};

class Langevin : public Thermostat {
public:
    Langevin(const ThermostatOptions& options, double time_step) : kick_(options, time_step) {}
    double half_way(Particles& particles, int64_t step) override {
        double growth = 0;
        for (size_t atom = 0; atom < particles.atom_count(); ++atom)
            if (particles.moves(atom))
                growth += kick_.apply(particles.velocities.data() + 3 * atom, particles.masses[atom], step,
                                      static_cast<int64_t>(atom));
        return 0.5 * growth / kAccelerationUnit;
    }

private:
    LangevinKick kick_;
};

}  // namespace mlff
