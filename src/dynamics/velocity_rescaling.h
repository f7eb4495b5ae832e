// SPDX-License-Identifier: MIT
// Stochastic velocity rescaling (Bussi, Donadio and Parrinello 2007): scales all velocities so that the kinetic energy
// relaxes to its mean and fluctuates as in the canonical ensemble. Acts once per step, after velocity Verlet.
#pragma once

#include <cmath>

#include "dynamics/counter_random.h"
#include "dynamics/thermostat.h"
#include "dynamics/units.h"

namespace mlff {

// The factor for the velocities. CPU and GPU use the same code.
struct RescalingFactor {
    double kept = 1;    // part of the kinetic energy kept over a step
    double target = 0;  // mean kinetic energy per degree of freedom, eV
    int64_t degrees = 0;
    uint64_t seed = 0;

    RescalingFactor() = default;
    RescalingFactor(const ThermostatOptions& options, int64_t degrees_of_freedom, double time_step)
        : kept(std::exp(-time_step / options.relaxation_time)),
          target(0.5 * kBoltzmann * options.temperature),
          degrees(degrees_of_freedom),
          seed(options.seed) {}

    // K' = c K + (1 - c) K_1 (sum of f squared normals R_i) + 2 R_1 sqrt(c (1 - c) K K_1), with K_1 the mean kinetic
    // energy per degree of freedom.
    MLFF_HOST_DEVICE double draw(double kinetic, int64_t step) const {
        if (!(kinetic > 0)) return 1;
        const double ratio = target / kinetic,
                     first = random_normals(seed, static_cast<uint64_t>(step), kThermostatDraw)[0];
        const double others = random_chi_square(seed, static_cast<uint64_t>(step), kThermostatDraw + 1, degrees - 1);
        const double mixed =
            std::sqrt(kept) + first * std::sqrt((1 - kept) * ratio);  // its square contains all terms with R_1
        return std::copysign(std::sqrt(mixed * mixed + (1 - kept) * ratio * others), mixed);
    }
};

class VelocityRescaling : public Thermostat {
public:
    VelocityRescaling(const ThermostatOptions& options, int64_t degrees_of_freedom, double time_step)
        : factor_(options, degrees_of_freedom, time_step) {}
    double end_step(Particles& particles, int64_t step) override {
        const double kinetic = particles.kinetic_energy(), scale = factor_.draw(kinetic, step);
        for (double& v : particles.velocities) v *= scale;
        return (scale * scale - 1) * kinetic;
    }

private:
    RescalingFactor factor_;
};

}  // namespace mlff
