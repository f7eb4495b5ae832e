// SPDX-License-Identifier: MIT
#include "tools/validate/trajectory.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "core/elements.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/units.h"
#include "neighbors/neighbor_list.h"

namespace mlff::validate {
namespace {

double length(const Vec3& a) { return std::hypot(a[0], a[1], a[2]); }

// A sum over atoms, and the sum of the absolute values.
struct Momentum {
    Vec3 sum{};
    double sizes = 0;

    void add(const Vec3& one) {
        for (size_t k = 0; k < 3; ++k) sum[k] += one[k];
        sizes += length(one);
    }
    double change_since(const Momentum& start) const {
        const double change = length({sum[0] - start.sum[0], sum[1] - start.sum[1], sum[2] - start.sum[2]}),
                     scale = std::max(sizes, start.sizes);
        return scale > 0 ? change / scale : change;
    }
};

struct Momenta {
    Momentum linear, angular;

    // Angular momentum about `center`.
    Momenta(const Particles& particles, const Vec3& center) {
        for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
            const double mass = particles.masses[atom], *x = &particles.positions[3 * atom],
                         *v = &particles.velocities[3 * atom];
            linear.add({mass * v[0], mass * v[1], mass * v[2]});
            angular.add(
                cross({x[0] - center[0], x[1] - center[1], x[2] - center[2]}, {mass * v[0], mass * v[1], mass * v[2]}));
        }
    }
};

Vec3 center_of_mass(const Particles& particles) {
    Vec3 center{};
    double total = 0;
    for (double mass : particles.masses) total += mass;
    for (size_t i = 0; i < particles.positions.size(); ++i)
        center[i % 3] += particles.masses[i / 3] * particles.positions[i] / total;
    return center;
}

bool is_finite(const std::vector<double>& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

// Uses all 3 N degrees of freedom.
double kinetic_temperature(double kinetic_energy, size_t atom_count) {
    return 2 * kinetic_energy / (3.0 * static_cast<double>(atom_count) * kBoltzmann);
}

void observe(Run& run, const MolecularDynamics& dynamics, const Momenta& start, const Vec3& center) {
    const Particles& particles = dynamics.particles();
    run.total_energy.push_back(dynamics.total_energy());
    run.kinetic_energy.push_back(particles.kinetic_energy());
    std::vector<double> by_element(run.elements.size(), 0.0);
    for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
        const double* v = &particles.velocities[3 * atom];
        const auto element =
            std::lower_bound(run.elements.begin(), run.elements.end(), particles.atomic_numbers[atom]) -
            run.elements.begin();
        by_element[static_cast<size_t>(element)] +=
            0.5 * particles.masses[atom] * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) / kAccelerationUnit;
    }
    for (size_t i = 0; i < by_element.size(); ++i) run.element_kinetic_energy[i].push_back(by_element[i]);
    const Momenta now(particles, center);
    run.momentum_change = std::max(run.momentum_change, now.linear.change_since(start.linear));
    run.angular_momentum_change = std::max(run.angular_momentum_change, now.angular.change_since(start.angular));
}

}  // namespace

std::string BlowUp::sentence() const {
    return concat(phase, " broke at step ", step, ": ", reason, "; closest: ", closest_pair);
}

std::string closest_pair(const Particles& particles) {
    constexpr double kReach = 3;  // angstrom
    const std::string none = concat("no two atoms are within ", kReach, " A");
    if (!is_finite(particles.positions)) return "positions are no longer finite";
    NeighborOptions options;
    options.cutoff = kReach;
    options.half = true;
    NeighborList neighbors(options);
    ThreadTeam team(1);
    try {
        neighbors.update(particles.view(), team);
    } catch (const Error&) {
        return "the atoms are too far apart to be searched";
    }
    const Edges& edges = neighbors.edges();
    if (edges.edge_count == 0) return none;
    const auto nearest = std::min_element(edges.distance, edges.distance + edges.edge_count) - edges.distance;
    const auto receiver = std::upper_bound(edges.first, edges.first + edges.atom_count + 1, nearest) - edges.first - 1;
    const auto name = [&](int64_t atom) {
        return concat(atom, " (", element_symbol(particles.atomic_numbers[static_cast<size_t>(atom)]), ")");
    };
    return concat("atoms ", name(receiver), " and ", name(edges.sender[nearest]), ", ", std::fixed,
                  std::setprecision(3), edges.distance[nearest], " A apart");
}

Run run_dynamics(Session& session, const Particles& start, const RunOptions& options) {
    Run run;
    run.phase = options.phase;
    run.time_step = options.time_step;
    run.friction = options.bath ? options.bath->friction : 0;
    run.last = start;
    run.elements.assign(start.atomic_numbers.begin(), start.atomic_numbers.end());
    std::sort(run.elements.begin(), run.elements.end());
    run.elements.erase(std::unique(run.elements.begin(), run.elements.end()), run.elements.end());
    run.element_kinetic_energy.resize(run.elements.size());
    const Vec3 center = center_of_mass(start);
    const Momenta at_start(start, center);
    int64_t step = 0;
    const auto break_off = [&](const std::string& reason) {
        run.blow_up = BlowUp{options.phase, step, reason, closest_pair(run.last)};
    };
    try {
        MolecularDynamics dynamics(session, start, options.time_step, options.bath);
        while (step < options.step_count) {
            ++step;
            dynamics.step();
            run.last = dynamics.particles();
            const double temperature = kinetic_temperature(run.last.kinetic_energy(), run.last.atom_count());
            if (!(temperature <= options.highest_temperature)) {
                break_off(concat("the temperature rose to ", temperature, " K"));
                return run;
            }
            observe(run, dynamics, at_start, center);
            if (options.snapshot_interval > 0 && step % options.snapshot_interval == 0)
                run.snapshots.push_back({step, run.last.positions, dynamics.forces(), dynamics.potential_energy()});
            if (options.on_step) options.on_step(step);
        }
    } catch (const Error& error) {
        if (error.status() != Status::system) throw;  // device or memory errors say nothing about the model
        break_off(error.what());
    }
    return run;
}

std::optional<BlowUp> relax(Session& session, Particles& particles, int step_count) {
    constexpr double kMobility = 0.01, kLargestMove = 0.03;  // angstrom^2/eV, angstrom
    double energy = 0;
    std::vector<double> forces(particles.positions.size());
    Results results;
    results.outputs.energy = &energy;
    results.outputs.forces = forces.data();
    for (int step = 1; step <= step_count; ++step) {
        const auto broken = [&](const std::string& reason) {
            return BlowUp{"the relaxation", step, reason, closest_pair(particles)};
        };
        try {
            const SystemView system = particles.view();
            session.evaluate_unchecked({&system, 1}, {&results, 1});
        } catch (const Error& error) {
            if (error.status() != Status::system) throw;
            return broken(error.what());
        }
        if (!std::isfinite(energy) || !is_finite(forces)) return broken("the model gives no finite energy and forces");
        for (size_t i = 0; i < forces.size(); ++i)
            particles.positions[i] += std::clamp(kMobility * forces[i], -kLargestMove, kLargestMove);
    }
    return {};
}

}  // namespace mlff::validate
