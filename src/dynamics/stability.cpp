// SPDX-License-Identifier: MIT
#include "dynamics/stability.h"

#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "core/error.h"
#include "neighbors/neighbor_list.h"

namespace mlff {
namespace {

struct Outermost {
    size_t atom = 0;
    double distance = 0;  // from the centre of all atoms, in open directions
};

Outermost outermost_atom(const Particles& particles) {
    const size_t count = particles.atom_count();
    Vec3 center{};
    for (size_t i = 0; i < 3 * count; ++i)
        if (!std::isfinite(particles.positions[i])) return {i / 3, HUGE_VAL};
    for (size_t i = 0; i < 3 * count; ++i) center[i % 3] += particles.positions[i] / static_cast<double>(count);
    Outermost result;
    double largest = -1;
    for (size_t atom = 0; atom < count; ++atom) {
        double squared = 0;
        for (size_t k = 0; k < 3; ++k)
            if (!particles.environment.periodic[k])
                squared += std::pow(particles.positions[3 * atom + k] - center[k], 2);
        if (squared > largest) largest = squared, result = {atom, std::sqrt(squared)};
    }
    return result;
}

size_t hottest_atom(const Particles& particles) {
    const auto energy = [&](size_t atom) {
        const double* v = particles.velocities.data() + 3 * atom;
        return particles.masses[atom] * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    };
    size_t hottest = 0;
    for (size_t atom = 1; atom < particles.atom_count(); ++atom)
        if (energy(atom) > energy(hottest)) hottest = atom;
    return hottest;
}

std::string name_of(const SystemView& system, int64_t atom) {
    return concat(atom, " (", element_symbol(system.atomic_numbers[atom]), ")");
}

}  // namespace

std::optional<AtomPair> closest_pair(const SystemView& system) {
    ThreadTeam team(1);
    for (double cutoff = 1.5; cutoff <= 12; cutoff *= 2) {
        NeighborOptions options;
        options.cutoff = cutoff;
        options.half = true;
        NeighborList list(options);
        try {
            list.update(system, team);
        } catch (const Error&) {
            return {};
        }
        const Edges& edges = list.edges();
        if (edges.edge_count == 0) continue;
        AtomPair closest = {0, 0, HUGE_VAL};
        for (int64_t atom = 0; atom < edges.atom_count; ++atom)
            for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge)
                if (edges.distance[edge] < closest.distance) closest = {atom, edges.sender[edge], edges.distance[edge]};
        return closest;
    }
    return {};
}

std::string describe_closest_pair(const SystemView& system) {
    const std::optional<AtomPair> pair = closest_pair(system);
    return pair ? concat("; the closest atoms are ", name_of(system, pair->first), " and ",
                         name_of(system, pair->second), ", ", pair->distance, " A apart")
                : "";
}

StabilityGuard::StabilityGuard(const Particles& start, const StabilityLimits& limits)
    : farthest_(outermost_atom(start).distance + limits.distance), temperature_(limits.temperature) {
    if (!(limits.temperature > 0))
        fail(Status::argument, "the temperature limit is ", limits.temperature, " K, expected more than 0");
    if (!(limits.distance > 0))
        fail(Status::argument, "the distance limit is ", limits.distance, " A, expected more than 0");
}

void StabilityGuard::check(const Particles& particles, int64_t step) const {
    const SystemView system = particles.view();
    const double temperature = particles.temperature();
    if (!(temperature <= temperature_)) {
        const auto hottest = static_cast<int64_t>(hottest_atom(particles));
        fail(Status::system, "the temperature is ", temperature, " K at step ", step, ", above the limit of ",
             temperature_, " K; the fastest atom is ", name_of(system, hottest), describe_closest_pair(system));
    }
    const Outermost outermost = outermost_atom(particles);
    if (!(outermost.distance <= farthest_))
        fail(Status::system, "atom ", name_of(system, static_cast<int64_t>(outermost.atom)), " is lost at step ", step,
             ": ", outermost.distance, " A from the centre, more than ", farthest_, describe_closest_pair(system));
}

}  // namespace mlff
