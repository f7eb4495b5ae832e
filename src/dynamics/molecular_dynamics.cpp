// SPDX-License-Identifier: MIT
#include "dynamics/molecular_dynamics.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "dynamics/counter_random.h"
#include "dynamics/units.h"

namespace mlff {

MolecularDynamics::MolecularDynamics(Session& session, Particles particles, double time_step, std::optional<LangevinBath> bath)
    : session_(session), particles_(std::move(particles)), time_step_(time_step), bath_(bath), forces_(particles_.positions.size()) {
    if (!(time_step > 0)) fail(Status::argument, "a time step of ", time_step, " fs is not possible");
    if (bath && !(bath->temperature >= 0 && bath->friction >= 0))
        fail(Status::argument, "a bath of ", bath->temperature, " K with a friction of ", bath->friction, "/fs is not possible");
    compute_forces();
}

void MolecularDynamics::compute_forces() {
    const SystemView system = particles_.view();
    Results results;
    results.outputs.energy = &potential_energy_;
    results.outputs.forces = forces_.data();
    session_.evaluate({&system, 1}, {&results, 1});
    const bool is_finite = std::isfinite(potential_energy_) && std::all_of(forces_.begin(), forces_.end(), [](double f) { return std::isfinite(f); });
    if (!is_finite) fail(Status::system, "the model gives no finite energy and forces at step ", step_count_, " of the dynamics");
}

void MolecularDynamics::kick() {
    for (size_t i = 0; i < forces_.size(); ++i) particles_.velocities[i] += 0.5 * time_step_ * kAccelerationUnit * forces_[i] / particles_.masses[i / 3];
}

void MolecularDynamics::drift() {
    for (size_t i = 0; i < forces_.size(); ++i) particles_.positions[i] += 0.5 * time_step_ * particles_.velocities[i];
}

void MolecularDynamics::shake_velocities() {
    const double kept = std::exp(-bath_->friction * time_step_);
    for (size_t atom = 0; atom < particles_.atom_count(); ++atom) {
        const auto normal = random_normals(bath_->seed, static_cast<uint64_t>(step_count_), atom);
        const double spread = std::sqrt((1 - kept * kept) * kBoltzmann * bath_->temperature * kAccelerationUnit / particles_.masses[atom]);
        for (size_t k = 0; k < 3; ++k) {
            double& v = particles_.velocities[3 * atom + k];
            v = kept * v + spread * normal[k];
        }
    }
}

void MolecularDynamics::step() {
    ++step_count_;
    kick();
    drift();
    if (bath_) shake_velocities();
    drift();
    compute_forces();
    kick();
}

}  // namespace mlff
