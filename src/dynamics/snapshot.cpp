// SPDX-License-Identifier: MIT
#include "dynamics/snapshot.h"

#include "dynamics/molecular_dynamics.h"

namespace mlff {

void Snapshot::take(const MolecularDynamics& dynamics) {
    const Particles& particles = dynamics.particles();
    step = dynamics.step_count();
    time = static_cast<double>(step) * dynamics.time_step();
    positions = particles.positions;
    velocities = particles.velocities;
    forces = dynamics.forces();
    cell = particles.environment.cell;
    potential_energy = dynamics.potential_energy();
    kinetic_energy = dynamics.kinetic_energy();
    temperature = dynamics.temperature();
}

}  // namespace mlff
