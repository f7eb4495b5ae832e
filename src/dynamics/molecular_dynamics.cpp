// SPDX-License-Identifier: MIT
#include "dynamics/molecular_dynamics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/resident_motion.h"
#include "dynamics/units.h"

namespace mlff {
namespace {

using Kind = ThermostatOptions::Kind;

void check(const DynamicsOptions& options, const Particles& particles) {
    if (!(options.time_step > 0 && std::isfinite(options.time_step)))
        fail(Status::argument, "the time step is ", options.time_step, " fs, expected a finite number above 0");
    if (options.barostat && options.thermostat.kind == Kind::none)
        fail(Status::argument, "constant pressure needs a thermostat");
    if (options.remove_momentum_every < 0)
        fail(Status::argument, "the momentum cannot be removed every ", options.remove_momentum_every,
             " steps, expected 0 (never) or more");
    if (options.trust_every < 0)
        fail(Status::argument, "trust cannot be measured every ", options.trust_every,
             " steps, expected 0 (never) or more");
    if (options.remove_momentum_every > 0 && options.thermostat.kind == Kind::langevin)
        fail(Status::argument,
             "a Langevin bath moves the centre of mass; its momentum can be removed only with other thermostats");
    if (options.remove_momentum_every > 0 && particles.has_fixed_atoms())
        fail(Status::argument, "some atoms are fixed, and removing the momentum would move them");
    for (size_t atom = 0; atom < particles.atom_count(); ++atom)
        if (!(particles.masses[atom] > 0 && std::isfinite(particles.masses[atom])))
            fail(Status::system, "atom ", atom, " has a mass of ", particles.masses[atom], " u, expected more than 0");
}

Particles with_rigid_degrees(Particles particles, const DynamicsOptions& options) {
    particles.rigid_degrees = count_rigid_degrees(options, particles);
    return particles;
}

}  // namespace

int count_rigid_degrees(const DynamicsOptions& options, const Particles& particles) {
    if (options.thermostat.kind == Kind::langevin) return 0;
    return options.remove_momentum_every > 0 && !particles.environment.is_periodic() && particles.atom_count() > 2 ? 6
                                                                                                                   : 3;
}

MolecularDynamics::MolecularDynamics(std::unique_ptr<ForceProvider> owned, ForceProvider* provider, Particles particles,
                                     const DynamicsOptions& options)
    : owned_(std::move(owned)), provider_(provider ? provider : owned_.get()), options_(options) {
    now_.particles = std::move(particles);
    now_.forces.resize(now_.particles.positions.size());
    check(options_, now_.particles);
    for (size_t atom = 0; atom < now_.particles.atom_count(); ++atom) {
        inverse_masses_.push_back(now_.particles.moves(atom) ? kAccelerationUnit / now_.particles.masses[atom] : 0);
        if (!now_.particles.moves(atom))
            std::fill_n(now_.particles.velocities.begin() + static_cast<std::ptrdiff_t>(3 * atom), 3, 0.0);
    }
    const ThermostatOptions& bath = options_.thermostat;
    thermostat_ = make_thermostat(bath, now_.particles, options_.time_step);
    if (options_.barostat)
        barostat_.emplace(*options_.barostat, now_.particles, bath.temperature, bath.seed, options_.time_step);
    options_.wants_virial |= options_.barostat.has_value();
}

MolecularDynamics::MolecularDynamics(ForceProvider& provider, Particles particles, const DynamicsOptions& options)
    : MolecularDynamics(nullptr, &provider, with_rigid_degrees(std::move(particles), options), options) {
    compute_forces();
}

MolecularDynamics::MolecularDynamics(ForceProvider& provider, const DynamicsState& state,
                                     const DynamicsOptions& options)
    : MolecularDynamics(nullptr, &provider, with_rigid_degrees(state.particles, options), options) {
    const std::span<double> bath_state = thermostat_ ? thermostat_->state() : std::span<double>{};
    if (state.thermostat.size() != bath_state.size())
        fail(Status::argument, "the state has ", state.thermostat.size(),
             " thermostat variables, but this thermostat has ", bath_state.size());
    std::copy(state.thermostat.begin(), state.thermostat.end(), bath_state.begin());
    now_.step_count = state.step_count;
    now_.heat = state.heat;
    if (state.searched_positions != now_.particles.positions ||
        state.searched_cell != now_.particles.environment.cell) {
        SystemView searched = now_.particles.view();
        searched.positions = state.searched_positions.data();
        searched.cell = state.searched_cell;
        if (state.searched_positions.size() != now_.particles.positions.size())
            fail(Status::argument, "the state lacks the positions of its last neighbour search");
        provider_->compute(searched, now_.forces.data(), options_.wants_virial ? now_.virial[0].data() : nullptr);
        search_count_ = provider_->search_count();
        searched_positions_ = state.searched_positions;
        searched_cell_ = state.searched_cell;
    }
    compute_forces();
    const double tolerance = 1e-3 * static_cast<double>(std::max<size_t>(
                                        now_.particles.atom_count(), 1));  // eV; accepts other devices and precisions
    if (!(std::abs(now_.potential_energy - state.potential_energy) <= tolerance))
        fail(Status::argument, "the potential energy of the restart state was ", state.potential_energy, " eV, and is ",
             now_.potential_energy, " eV now: the state belongs to another model");
}

void check_finite(const DynamicsNow& now) {
    for (size_t i = 0; i < now.forces.size(); ++i)
        if (!std::isfinite(now.forces[i]))
            fail(Status::system, "the force on atom ", i / 3, " is not finite at step ", now.step_count,
                 " of the dynamics");
    if (!std::isfinite(now.potential_energy))
        fail(Status::system, "the energy is not finite at step ", now.step_count, " of the dynamics");
}

MolecularDynamics::~MolecularDynamics() = default;
MolecularDynamics::MolecularDynamics(MolecularDynamics&&) noexcept = default;

void MolecularDynamics::compute_forces() {
    const SystemView system = now_.particles.view();
    double* const virial = options_.wants_virial ? now_.virial[0].data() : nullptr;
    if (measures_trust(options_, now_.step_count)) {
        now_.potential_energy = provider_->compute_with_trust(system, now_.forces.data(), virial, now_.trust);
        now_.trust_step = now_.step_count;
    } else {
        now_.potential_energy = provider_->compute(system, now_.forces.data(), virial);
    }
    if (const int64_t searches = provider_->search_count(); searches != search_count_) {
        search_count_ = searches;
        searched_positions_ = now_.particles.positions;
        searched_cell_ = system.cell;
    }
    check_finite(now_);
}

void MolecularDynamics::kick() {
    std::vector<double>& velocities = now_.particles.velocities;
    for (size_t atom = 0; atom < inverse_masses_.size(); ++atom)
        for (size_t i = 3 * atom; i < 3 * atom + 3; ++i)
            velocities[i] += 0.5 * options_.time_step * inverse_masses_[atom] * now_.forces[i];
}

void MolecularDynamics::drift() {
    for (size_t i = 0; i < now_.forces.size(); ++i)
        now_.particles.positions[i] += 0.5 * options_.time_step * now_.particles.velocities[i];
}

void MolecularDynamics::begin_step() {
    if (guard_) recent_.next().take(*this);
    Particles& particles = now_.particles;
    const int64_t step = ++now_.step_count;
    if (thermostat_) now_.heat += thermostat_->begin_step(particles, step);
    kick();
    drift();
    if (thermostat_) now_.heat += thermostat_->half_way(particles, step);
    if (barostat_ && barostat_->acts_at(step)) barostat_->rescale(particles, now_.virial, step);
    drift();
}

void MolecularDynamics::finish_step() {
    Particles& particles = now_.particles;
    const int64_t step = now_.step_count;
    compute_forces();
    kick();
    if (thermostat_) now_.heat += thermostat_->end_step(particles, step);
    if (options_.remove_momentum_every > 0 && step % options_.remove_momentum_every == 0) {
        const double before = particles.kinetic_energy();
        remove_momentum(particles);
        if (!particles.environment.is_periodic() && particles.atom_count() > 2) remove_rotation(particles);
        now_.heat += particles.kinetic_energy() - before;
    }
    if (guard_) guard_->check(particles, step);
}

void MolecularDynamics::advance(int64_t count, const std::function<bool()>& goes_on) {
    if (resident_) return resident_->advance(now_, now_.step_count + count, goes_on, guard_ ? &*guard_ : nullptr);
    for (int64_t i = 0; i < count; ++i) {
        begin_step();
        finish_step();
        if (goes_on && !goes_on()) return;
    }
}

void swap_atoms(MolecularDynamics& cold, MolecularDynamics& hot, double warming) {
    const double cold_before = cold.total_energy(), hot_before = hot.total_energy();
    DynamicsNow &a = cold.now_, &b = hot.now_;
    std::swap(a.particles.positions, b.particles.positions);
    std::swap(a.particles.velocities, b.particles.velocities);
    std::swap(a.particles.environment.cell, b.particles.environment.cell);
    std::swap(a.forces, b.forces);
    std::swap(a.virial, b.virial);
    std::swap(a.potential_energy, b.potential_energy);
    std::swap(cold.searched_positions_, hot.searched_positions_);
    std::swap(cold.searched_cell_, hot.searched_cell_);
    for (double& velocity : a.particles.velocities) velocity /= warming;
    for (double& velocity : b.particles.velocities) velocity *= warming;
    a.heat += cold.total_energy() - cold_before;
    b.heat += hot.total_energy() - hot_before;
}

void MolecularDynamics::move_to_device(DeviceStepper& stepper, ThreadTeam& team) {
    if (resident_) fail(Status::argument, "the atoms are on the GPU already");
    now_.kinetic_energy = now_.particles.kinetic_energy();
    resident_ = make_resident_motion(stepper, team, options_, now_,
                                     thermostat_ ? thermostat_->state() : std::span<const double>{});
}

void MolecularDynamics::watch(const StabilityLimits& limits) { guard_.emplace(here().particles, limits); }

const RecentSnapshots& MolecularDynamics::recent() const {
    if (resident_) resident_->fetch_recent(recent_);
    return recent_;
}

double MolecularDynamics::pressure() const {
    return (2 * kinetic_energy() + now_.virial[0][0] + now_.virial[1][1] + now_.virial[2][2]) /
           (3 * std::abs(determinant(cell())));
}

const DynamicsNow& MolecularDynamics::here() const {
    if (resident_) resident_->fetch(now_);
    return now_;
}

DynamicsState MolecularDynamics::state() const {
    DynamicsState state = {particles(), now_.step_count,     now_.potential_energy, now_.heat,
                           {},          searched_positions_, searched_cell_};
    if (thermostat_) {
        const std::span<double> numbers = thermostat_->state();
        state.thermostat.assign(numbers.begin(), numbers.end());
    }
    if (resident_) resident_->fetch_rest(state);
    return state;
}

}  // namespace mlff
