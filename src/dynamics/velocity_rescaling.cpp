// SPDX-License-Identifier: MIT
#include "dynamics/velocity_rescaling.h"

#include <cmath>

#include "dynamics/counter_random.h"
#include "dynamics/units.h"

namespace mlff {

VelocityRescaling::VelocityRescaling(const ThermostatOptions& options, int64_t degrees_of_freedom, double time_step)
    : kept_(std::exp(-time_step / options.relaxation_time)), target_(0.5 * kBoltzmann * options.temperature), degrees_(degrees_of_freedom), seed_(options.seed) {}

// K' = c K + (1 - c) K_1 (sum of f squared normals R_i) + 2 R_1 sqrt(c (1 - c) K K_1), K_1 the mean kinetic energy of a degree of freedom
double VelocityRescaling::end_step(Particles& particles, int64_t step) {
    const double kinetic = particles.kinetic_energy();
    if (!(kinetic > 0)) return 0;
    const double ratio = target_ / kinetic, first = random_normals(seed_, static_cast<uint64_t>(step), kThermostatDraw)[0];
    const double others = random_chi_square(seed_, static_cast<uint64_t>(step), kThermostatDraw + 1, degrees_ - 1);
    const double mixed = std::sqrt(kept_) + first * std::sqrt((1 - kept_) * ratio);  // its square holds all terms with R_1
    const double squared = mixed * mixed + (1 - kept_) * ratio * others;
    const double scale = std::copysign(std::sqrt(squared), mixed);
    for (double& v : particles.velocities) v *= scale;
    return (squared - 1) * kinetic;
}

}  // namespace mlff
