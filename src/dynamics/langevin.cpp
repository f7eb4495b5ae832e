// SPDX-License-Identifier: MIT
#include "dynamics/langevin.h"

#include <cmath>

#include "dynamics/counter_random.h"
#include "dynamics/units.h"

namespace mlff {

Langevin::Langevin(const ThermostatOptions& options, double time_step)
    : kept_(std::exp(-time_step / options.relaxation_time)),
      variance_((1 - kept_ * kept_) * kBoltzmann * options.temperature * kAccelerationUnit),
      seed_(options.seed) {}

double Langevin::half_way(Particles& particles, int64_t step) {
    double heat = 0;
    for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
        if (!particles.moves(atom)) continue;
        const auto normal = random_normals(seed_, static_cast<uint64_t>(step), atom);
        const double spread = std::sqrt(variance_ / particles.masses[atom]);
        for (size_t k = 0; k < 3; ++k) {
            double& v = particles.velocities[3 * atom + k];
            const double before = v * v;
            v = kept_ * v + spread * normal[k];
            heat += particles.masses[atom] * (v * v - before);
        }
    }
    return 0.5 * heat / kAccelerationUnit;
}

}  // namespace mlff
