// SPDX-License-Identifier: MIT
#include "dynamics/ring_polymer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "dynamics/units.h"

namespace mlff {
namespace {

void check_ring(const RingPolymerOptions& options, const std::vector<Particles>& beads) {
    const ThermostatOptions& bath = options.thermostat;
    if (!(options.time_step > 0 && std::isfinite(options.time_step)))
        fail(Status::argument, "the time step is ", options.time_step, " fs, expected a finite number above 0");
    if (bath.kind != ThermostatOptions::Kind::none && bath.kind != ThermostatOptions::Kind::langevin)
        fail(Status::argument, "the thermostat of a ring polymer is Langevin's, or there is none");
    if (!(bath.relaxation_time > 0))
        fail(Status::argument, "the thermostat's relaxation time is ", bath.relaxation_time,
             " fs, expected more than 0");
    const Particles& first = beads.front();
    if (first.has_fixed_atoms())
        fail(Status::argument, "some atoms are fixed, but the atoms of a ring polymer must all be free");
    for (const Particles& bead : beads)
        if (bead.atomic_numbers != first.atomic_numbers || bead.masses != first.masses)
            fail(Status::argument, "the beads of a ring polymer have different atoms or masses");
    for (size_t atom = 0; atom < first.atom_count(); ++atom)
        if (!(first.masses[atom] > 0 && std::isfinite(first.masses[atom])))
            fail(Status::system, "atom ", atom, " has a mass of ", first.masses[atom], " u, expected more than 0");
}

// result[i] = sum over j of matrix[j][i] numbers[j]
void transform_ring(const std::vector<double>& matrix, size_t count, const double* numbers, double* result) {
    std::fill_n(result, count, 0.0);
    for (size_t j = 0; j < count; ++j)
        for (size_t i = 0; i < count; ++i) result[i] += matrix[j * count + i] * numbers[j];
}

}  // namespace

RingModes::RingModes(int64_t beads, double temperature) : count(static_cast<size_t>(beads)) {
    if (beads < 1) fail(Status::argument, "a ring polymer of ", beads, " beads, expected 1 or more");
    if (!(temperature > 0 && std::isfinite(temperature)))
        fail(Status::argument, "the temperature of a ring polymer is ", temperature,
             " K, expected a finite number above 0");
    const auto length = static_cast<double>(beads);
    spring = length * kBoltzmann * temperature / kReducedPlanck;
    of_bead.resize(count * count);
    of_mode.resize(count * count);
    for (size_t k = 0; k < count; ++k) {
        frequencies.push_back(2 * spring * std::sin(static_cast<double>(k) * std::numbers::pi / length));
        for (size_t j = 0; j < count; ++j) {
            const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % count) / length;
            double value = 1;  // of the centroid
            if (2 * k == count)
                value = j % 2 == 0 ? 1 : -1;
            else if (k > 0)
                value = std::numbers::sqrt2 * (2 * k < count ? std::cos(angle) : std::sin(angle));
            of_bead[j * count + k] = of_mode[k * count + j] = value / std::sqrt(length);
        }
    }
}

std::vector<Particles> make_beads(const Particles& centroid, int64_t count, double temperature, uint64_t seed) {
    const RingModes modes(count, temperature);
    std::vector<Particles> beads(modes.count, centroid);
    const size_t atoms = centroid.atom_count();
    for (size_t atom = 0; atom < atoms; ++atom) {
        const double spread = std::sqrt(kBoltzmann * temperature * static_cast<double>(count) * kAccelerationUnit /
                                        centroid.masses[atom]);
        for (size_t k = 1; k < modes.count; ++k) {
            const std::array<double, 3> normal = random_normals(seed, 0, k * atoms + atom);
            for (size_t j = 0; j < modes.count; ++j)
                for (size_t c = 0; c < 3; ++c)
                    beads[j].velocities[3 * atom + c] += modes.of_bead[j * modes.count + k] * spread * normal[c];
        }
    }
    return beads;
}

RingPolymer::RingPolymer(BatchForces& forces, std::vector<Particles> beads, const RingPolymerOptions& options)
    : forces_(forces),
      options_(options),
      beads_(std::move(beads)),
      modes_(static_cast<int64_t>(beads_.size()), options.thermostat.temperature) {
    check_ring(options_, beads_);
    const double half = 0.5 * options_.time_step;
    for (size_t k = 0; k < modes_.count; ++k) {
        const double frequency = modes_.frequencies[k];
        cosines_.push_back(k == 0 ? 1 : std::cos(frequency * half));
        velocity_to_position_.push_back(k == 0 ? half : std::sin(frequency * half) / frequency);
        position_to_velocity_.push_back(k == 0 ? 0 : -std::sin(frequency * half) * frequency);
        if (options_.thermostat.kind == ThermostatOptions::Kind::none) continue;
        ThermostatOptions bath = options_.thermostat;
        bath.temperature *= static_cast<double>(modes_.count);
        if (k > 0) bath.relaxation_time = 1 / (2 * frequency);
        kicks_.emplace_back(bath, options_.time_step);
    }
    for (const double mass : beads_.front().masses) inverse_masses_.push_back(kAccelerationUnit / mass);
    mode_positions_.resize(3 * atom_count() * modes_.count);
    mode_velocities_.resize(mode_positions_.size());
    growths_.resize(atom_count());
    answers_.resize(bead_count());
    for (BatchAnswer& answer : answers_) places_.push_back(&answer);
    compute_forces();
}

void RingPolymer::go_on_at(int64_t step_count, double heat) {
    step_count_ = step_count;
    heat_ = heat;
}

void RingPolymer::watch(const StabilityLimits& limits) { guard_.emplace(centroid(), limits); }

void RingPolymer::compute_forces() {
    systems_.clear();
    for (const Particles& bead : beads_) systems_.push_back(bead.view());
    forces_.compute(systems_, places_);
    for (size_t j = 0; j < bead_count(); ++j) {
        if (answers_[j].error)
            throw Error(answers_[j].error->status(), concat("bead ", j, ": ", answers_[j].error->what()));
        for (size_t i = 0; i < answers_[j].forces.size(); ++i)
            if (!std::isfinite(answers_[j].forces[i]))
                fail(Status::system, "bead ", j, ": the force on atom ", i / 3, " is not finite at step ", step_count_,
                     " of the dynamics");
        if (!std::isfinite(answers_[j].energy))
            fail(Status::system, "bead ", j, ": the energy is not finite at step ", step_count_, " of the dynamics");
    }
}

void RingPolymer::kick() {
    for (size_t j = 0; j < bead_count(); ++j)
        for (size_t i = 0; i < answers_[j].forces.size(); ++i)
            beads_[j].velocities[i] += 0.5 * options_.time_step * inverse_masses_[i / 3] * answers_[j].forces[i];
}

void RingPolymer::move_atom(size_t atom) {
    const size_t count = modes_.count;
    std::vector<double> numbers(count), moved(count);
    double* const x = mode_positions_.data() + 3 * atom * count;
    double* const v = mode_velocities_.data() + 3 * atom * count;
    const auto to_modes = [&](std::vector<double> Particles::*what, size_t c, double* modes) {
        for (size_t j = 0; j < count; ++j) numbers[j] = (beads_[j].*what)[3 * atom + c];
        transform_ring(modes_.of_bead, count, numbers.data(), modes);
    };
    const auto to_beads = [&](const double* modes, std::vector<double> Particles::*what, size_t c) {
        transform_ring(modes_.of_mode, count, modes, moved.data());
        for (size_t j = 0; j < count; ++j) (beads_[j].*what)[3 * atom + c] = moved[j];
    };
    const auto drift = [&] {
        for (size_t i = 0; i < 3 * count; ++i) {
            const size_t k = i % count;
            const double before = x[i];
            x[i] = cosines_[k] * before + velocity_to_position_[k] * v[i];
            v[i] = cosines_[k] * v[i] + position_to_velocity_[k] * before;
        }
    };
    for (size_t c = 0; c < 3; ++c) {
        to_modes(&Particles::positions, c, x + c * count);
        to_modes(&Particles::velocities, c, v + c * count);
    }
    drift();
    growths_[atom] = 0;
    for (size_t k = 0; k < kicks_.size(); ++k) {
        double velocity[3] = {v[k], v[count + k], v[2 * count + k]};
        growths_[atom] += kicks_[k].apply(velocity, beads_.front().masses[atom], step_count_,
                                          static_cast<int64_t>(k * atom_count() + atom));
        for (size_t c = 0; c < 3; ++c) v[c * count + k] = velocity[c];
    }
    drift();
    for (size_t c = 0; c < 3; ++c) {
        to_beads(x + c * count, &Particles::positions, c);
        to_beads(v + c * count, &Particles::velocities, c);
    }
}

void RingPolymer::step() {
    if (guard_) recent_.next() = centroid_snapshot();
    ++step_count_;
    kick();
    run_over(forces_.team(), atom_count(), [&](size_t atom) { move_atom(atom); });
    double growth = 0;
    for (const double of_atom : growths_) growth += of_atom;
    heat_ += 0.5 * growth / kAccelerationUnit;
    compute_forces();
    kick();
    if (!guard_) return;
    guard_->check(centroid(), step_count_);
    check_ring_temperature();
}

void RingPolymer::check_ring_temperature() const {
    const double found = ring_temperature();
    if (!(found <= guard_->highest_temperature()))
        fail(Status::system, "the temperature of the beads is ", found, " K at step ", step_count_,
             ", above the limit of ", guard_->highest_temperature(), " K");
}

Particles RingPolymer::centroid() const {
    Particles mean = beads_.front();
    if (bead_count() == 1) return mean;
    const auto count = static_cast<double>(bead_count());
    for (size_t i = 0; i < mean.positions.size(); ++i) {
        double position = 0, velocity = 0;
        for (const Particles& bead : beads_) {
            position += bead.positions[i];
            velocity += bead.velocities[i];
        }
        mean.positions[i] = position / count;
        mean.velocities[i] = velocity / count;
    }
    return mean;
}

Snapshot RingPolymer::bead_snapshot(size_t bead) const {
    const Particles& particles = beads_[bead];
    Snapshot snapshot;
    snapshot.step = step_count_;
    snapshot.time = static_cast<double>(step_count_) * options_.time_step;
    snapshot.positions = particles.positions;
    snapshot.velocities = particles.velocities;
    snapshot.forces = answers_[bead].forces;
    snapshot.cell = particles.environment.cell;
    snapshot.potential_energy = answers_[bead].energy;
    snapshot.kinetic_energy = particles.kinetic_energy();
    snapshot.temperature = particles.temperature();
    return snapshot;
}

Snapshot RingPolymer::centroid_snapshot() const {
    const Particles mean = centroid();
    Snapshot snapshot = bead_snapshot(0);
    snapshot.positions = mean.positions;
    snapshot.velocities = mean.velocities;
    for (size_t i = 0; i < snapshot.forces.size(); ++i) {
        double force = 0;
        for (const BatchAnswer& answer : answers_) force += answer.forces[i];
        snapshot.forces[i] = force / static_cast<double>(bead_count());
    }
    snapshot.potential_energy = potential_energy();
    snapshot.kinetic_energy = mean.kinetic_energy();
    snapshot.temperature = mean.temperature();
    return snapshot;
}

double RingPolymer::potential_energy() const {
    double sum = 0;
    for (const BatchAnswer& answer : answers_) sum += answer.energy;
    return sum / static_cast<double>(bead_count());
}

double RingPolymer::spring_energy() const {
    double sum = 0;
    for (size_t j = 0; j < bead_count(); ++j) {
        const Particles &bead = beads_[j], &next = beads_[(j + 1) % bead_count()];
        for (size_t i = 0; i < bead.positions.size(); ++i) {
            const double stretch = next.positions[i] - bead.positions[i];
            sum += bead.masses[i / 3] * stretch * stretch;
        }
    }
    return 0.5 * modes_.spring * modes_.spring * sum / kAccelerationUnit;
}

double RingPolymer::primitive_kinetic_energy() const {
    const auto count = static_cast<double>(bead_count());
    return 1.5 * static_cast<double>(atom_count()) * count * kBoltzmann * options_.thermostat.temperature -
           spring_energy() / count;
}

double RingPolymer::virial_kinetic_energy() const {
    const Particles mean = centroid();
    double virial = 0;
    for (size_t j = 0; j < bead_count(); ++j)
        for (size_t i = 0; i < mean.positions.size(); ++i)
            virial -= (beads_[j].positions[i] - mean.positions[i]) * answers_[j].forces[i];
    return 1.5 * static_cast<double>(atom_count()) * kBoltzmann * options_.thermostat.temperature +
           0.5 * virial / static_cast<double>(bead_count());
}

double RingPolymer::bead_kinetic_energy() const {
    double sum = 0;
    for (const Particles& bead : beads_) sum += bead.kinetic_energy();
    return sum;
}

double RingPolymer::ring_temperature() const {
    const auto count = static_cast<double>(bead_count());
    const auto degrees =
        static_cast<double>(beads_.front().degrees_of_freedom()) + 3 * static_cast<double>(atom_count()) * (count - 1);
    return degrees > 0 ? 2 * bead_kinetic_energy() / (degrees * kBoltzmann * count) : 0;
}

double RingPolymer::conserved_energy() const {
    return potential_energy() + (bead_kinetic_energy() + spring_energy() - heat_) / static_cast<double>(bead_count());
}

}  // namespace mlff
