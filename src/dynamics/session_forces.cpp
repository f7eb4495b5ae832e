// SPDX-License-Identifier: MIT
#include "dynamics/session_forces.h"

#include "core/error.h"
#include "dynamics/molecular_dynamics.h"

namespace mlff {
namespace {

DynamicsOptions with_bath(double time_step, const std::optional<LangevinBath>& bath) {
    DynamicsOptions options;
    options.time_step = time_step;
    if (!bath) return options;
    if (!(bath->temperature >= 0 && bath->friction >= 0))
        fail(Status::argument, "the Langevin bath has ", bath->temperature, " K and a friction of ", bath->friction,
             "/fs, expected 0 or more for both");
    options.thermostat = {ThermostatOptions::Kind::langevin, bath->temperature, 1 / bath->friction, bath->seed};
    return options;
}

}  // namespace

double SessionForces::compute(const SystemView& system, double* forces, double* virial) {
    double energy = 0;
    Results results;
    results.outputs.energy = &energy;
    results.outputs.forces = forces;
    results.outputs.virial = virial;
    if (has_spread()) results.sigma_max_force = &sigma_max_force_;
    session_.evaluate_unchecked({&system, 1}, {&results, 1});
    return energy;
}

MolecularDynamics::MolecularDynamics(Session& session, Particles particles, double time_step,
                                     std::optional<LangevinBath> bath)
    : MolecularDynamics(std::make_unique<SessionForces>(session), nullptr, std::move(particles),
                        with_bath(time_step, bath)) {
    compute_forces();
}

}  // namespace mlff
