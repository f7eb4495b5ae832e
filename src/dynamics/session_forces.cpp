// SPDX-License-Identifier: MIT
#include "dynamics/session_forces.h"

#include <cmath>

#include "core/error.h"
#include "dynamics/molecular_dynamics.h"
#include "trust/meter.h"

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
    return compute(system, forces, virial, are_watched());
}

double SessionForces::compute_with_trust(const SystemView& system, double* forces, double* virial,
                                         TrustReading& trust) {
    if (!has_meter()) fail(Status::unsupported, "expected errors were asked for, but this model has no trust meter");
    const double energy = compute(system, forces, virial, true);
    trust = {reading_.sigma_max, reading_.atoms_outside};
    return energy;
}

double SessionForces::compute(const SystemView& system, double* forces, double* virial, bool watches) {
    double energy = 0;
    Results results;
    results.outputs.energy = &energy;
    results.outputs.forces = forces;
    results.outputs.virial = virial;
    if (watches) {
        sigma_forces_.resize(static_cast<size_t>(system.atom_count));
        if (has_meter()) {
            novelties_.resize(sigma_forces_.size());
            results.outputs.expected_errors = sigma_forces_.data();
            results.outputs.novelties = novelties_.data();
        } else {
            results.outputs.sigma_forces = sigma_forces_.data();
        }
    }
    session_.evaluate_unchecked({&system, 1}, {&results, 1});
    if (watches)
        reading_ = has_meter() ? read_meter(sigma_forces_, novelties_, session_.trust_meter()->alarm_error)
                               : read_spread(sigma_forces_, outside_sigma_.value_or(INFINITY));
    return energy;
}

bool SessionForces::has_meter() const { return session_.trust_meter() != nullptr; }

bool can_be_watched(const Session& session) {
    return session.model().summary().member_count > 0 || session.trust_meter();
}

MolecularDynamics::MolecularDynamics(Session& session, Particles particles, double time_step,
                                     std::optional<LangevinBath> bath)
    : MolecularDynamics(std::make_unique<SessionForces>(session), nullptr, std::move(particles),
                        with_bath(time_step, bath)) {
    compute_forces();
}

}  // namespace mlff
