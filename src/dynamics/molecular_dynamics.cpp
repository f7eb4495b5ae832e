// SPDX-License-Identifier: MIT
#include "dynamics/molecular_dynamics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "dynamics/units.h"

namespace mlff {
namespace {

using Kind = ThermostatOptions::Kind;

DynamicsOptions with_bath(double time_step, const std::optional<LangevinBath>& bath) {
    DynamicsOptions options;
    options.time_step = time_step;
    if (!bath) return options;
    if (!(bath->temperature >= 0 && bath->friction >= 0))
        fail(Status::argument, "a bath of ", bath->temperature, " K with a friction of ", bath->friction, "/fs is not possible");
    options.thermostat = {Kind::langevin, bath->temperature, 1 / bath->friction, bath->seed};
    return options;
}

void check(const DynamicsOptions& options, const Particles& particles) {
    if (!(options.time_step > 0 && std::isfinite(options.time_step))) fail(Status::argument, "a time step of ", options.time_step, " fs is not possible");
    if (options.barostat && options.thermostat.kind == Kind::none) fail(Status::argument, "constant pressure needs a thermostat");
    if (options.remove_momentum_every < 0)
        fail(Status::argument, "the momentum cannot be removed every ", options.remove_momentum_every, " steps, expected 0 (never) or more");
    if (options.remove_momentum_every > 0 && options.thermostat.kind == Kind::langevin)
        fail(Status::argument, "a Langevin bath moves the centre of mass; removing its momentum goes with the other thermostats only");
    if (options.remove_momentum_every > 0 && particles.has_fixed_atoms()) fail(Status::argument, "atoms are fixed, and removing the momentum would move them");
    for (size_t atom = 0; atom < particles.atom_count(); ++atom)
        if (!(particles.masses[atom] > 0 && std::isfinite(particles.masses[atom]))) fail(Status::system, "atom ", atom, " has a mass of ", particles.masses[atom], " u");
}

Particles with_rigid_degrees(Particles particles, const DynamicsOptions& options) {
    particles.rigid_degrees = count_rigid_degrees(options, particles);
    return particles;
}

}  // namespace

int count_rigid_degrees(const DynamicsOptions& options, const Particles& particles) {
    if (options.thermostat.kind == Kind::langevin) return 0;
    return options.remove_momentum_every > 0 && !particles.environment.is_periodic() && particles.atom_count() > 2 ? 6 : 3;
}

MolecularDynamics::MolecularDynamics(std::unique_ptr<ForceProvider> owned, ForceProvider* provider, Particles particles, const DynamicsOptions& options)
    : owned_(std::move(owned)), provider_(provider ? provider : owned_.get()), particles_(std::move(particles)), options_(options), forces_(particles_.positions.size()) {
    check(options_, particles_);
    for (size_t atom = 0; atom < particles_.atom_count(); ++atom) {
        inverse_masses_.push_back(particles_.moves(atom) ? kAccelerationUnit / particles_.masses[atom] : 0);
        if (!particles_.moves(atom)) std::fill_n(particles_.velocities.begin() + static_cast<std::ptrdiff_t>(3 * atom), 3, 0.0);
    }
    const ThermostatOptions& bath = options_.thermostat;
    thermostat_ = make_thermostat(bath, particles_, options_.time_step);
    if (options_.barostat) barostat_.emplace(*options_.barostat, particles_, bath.temperature, bath.seed, options_.time_step);
    options_.wants_virial |= options_.barostat.has_value();
}

MolecularDynamics::MolecularDynamics(Session& session, Particles particles, double time_step, std::optional<LangevinBath> bath)
    : MolecularDynamics(std::make_unique<SessionForces>(session), nullptr, std::move(particles), with_bath(time_step, bath)) {
    compute_forces();
}

MolecularDynamics::MolecularDynamics(ForceProvider& provider, Particles particles, const DynamicsOptions& options)
    : MolecularDynamics(nullptr, &provider, with_rigid_degrees(std::move(particles), options), options) {
    compute_forces();
}

MolecularDynamics::MolecularDynamics(ForceProvider& provider, const DynamicsState& state, const DynamicsOptions& options)
    : MolecularDynamics(nullptr, &provider, with_rigid_degrees(state.particles, options), options) {
    const std::span<double> bath_state = thermostat_ ? thermostat_->state() : std::span<double>{};
    if (state.thermostat.size() != bath_state.size())
        fail(Status::argument, "the state has ", state.thermostat.size(), " numbers of a thermostat, but this one has ", bath_state.size());
    std::copy(state.thermostat.begin(), state.thermostat.end(), bath_state.begin());
    step_count_ = state.step_count;
    heat_ = state.heat;
    if (state.searched_positions != particles_.positions || state.searched_cell != particles_.environment.cell) {
        SystemView searched = particles_.view();
        searched.positions = state.searched_positions.data();
        searched.cell = state.searched_cell;
        if (state.searched_positions.size() != particles_.positions.size()) fail(Status::argument, "the state lacks the positions of its last neighbour search");
        provider_->compute(searched, forces_.data(), options_.wants_virial ? virial_[0].data() : nullptr);
        search_count_ = provider_->search_count();
        searched_positions_ = state.searched_positions;
        searched_cell_ = state.searched_cell;
    }
    compute_forces();
    const double tolerance = 1e-3 * static_cast<double>(std::max<size_t>(particles_.atom_count(), 1));  // eV; other devices and precisions are let in
    if (!(std::abs(potential_energy_ - state.potential_energy) <= tolerance))
        fail(Status::argument, "the potential energy of the state was ", state.potential_energy, " eV, and is ", potential_energy_, " eV now: it is of another model");
}

void MolecularDynamics::compute_forces() {
    const SystemView system = particles_.view();
    potential_energy_ = provider_->compute(system, forces_.data(), options_.wants_virial ? virial_[0].data() : nullptr);
    if (const int64_t searches = provider_->search_count(); searches != search_count_) {
        search_count_ = searches;
        searched_positions_ = particles_.positions;
        searched_cell_ = system.cell;
    }
    for (size_t i = 0; i < forces_.size(); ++i)
        if (!std::isfinite(forces_[i])) fail(Status::system, "the force on atom ", i / 3, " is not finite at step ", step_count_, " of the dynamics");
    if (!std::isfinite(potential_energy_)) fail(Status::system, "the model gives no finite energy at step ", step_count_, " of the dynamics");
}

void MolecularDynamics::kick() {
    for (size_t atom = 0; atom < inverse_masses_.size(); ++atom)
        for (size_t i = 3 * atom; i < 3 * atom + 3; ++i) particles_.velocities[i] += 0.5 * options_.time_step * inverse_masses_[atom] * forces_[i];
}

void MolecularDynamics::drift() {
    for (size_t i = 0; i < forces_.size(); ++i) particles_.positions[i] += 0.5 * options_.time_step * particles_.velocities[i];
}

void MolecularDynamics::step() {
    ++step_count_;
    if (thermostat_) heat_ += thermostat_->begin_step(particles_, step_count_);
    kick();
    drift();
    if (thermostat_) heat_ += thermostat_->half_way(particles_, step_count_);
    if (barostat_ && barostat_->acts_at(step_count_)) barostat_->rescale(particles_, virial_, step_count_);
    drift();
    compute_forces();
    kick();
    if (thermostat_) heat_ += thermostat_->end_step(particles_, step_count_);
    if (options_.remove_momentum_every > 0 && step_count_ % options_.remove_momentum_every == 0) {
        const double before = particles_.kinetic_energy();
        remove_momentum(particles_);
        if (!particles_.environment.is_periodic() && particles_.atom_count() > 2) remove_rotation(particles_);
        heat_ += particles_.kinetic_energy() - before;
    }
}

DynamicsState MolecularDynamics::state() const {
    DynamicsState state = {particles_, step_count_, potential_energy_, heat_, {}, searched_positions_, searched_cell_};
    if (thermostat_) {
        const std::span<double> numbers = thermostat_->state();
        state.thermostat.assign(numbers.begin(), numbers.end());
    }
    return state;
}

}  // namespace mlff
