// SPDX-License-Identifier: MIT
#include "dynamics/session_forces.h"

#include <cmath>

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
    Results results;
    results.outputs.forces = forces;
    results.outputs.virial = virial;
    return compute(system, results);
}

double SessionForces::compute_with_trust(const SystemView& system, double* forces, double* virial,
                                         TrustReading& trust) {
    expected_errors_.resize(static_cast<size_t>(system.atom_count));
    novelties_.resize(static_cast<size_t>(system.atom_count));
    Results results;
    results.outputs.forces = forces;
    results.outputs.virial = virial;
    results.outputs.expected_errors = expected_errors_.data();
    results.outputs.novelties = novelties_.data();
    const double energy = compute(system, results);
    trust = {};
    for (const double error : expected_errors_)
        if (std::isnan(error) || error > trust.max_expected_error) trust.max_expected_error = error;
    for (const double novelty : novelties_) trust.outside_count += novelty > 1;
    return energy;
}

double SessionForces::compute(const SystemView& system, Results results) {
    double energy = 0;
    results.outputs.energy = &energy;
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
