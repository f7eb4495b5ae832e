// SPDX-License-Identifier: MIT
#include "validate/force_check.h"

#include <cmath>
#include <limits>

#include "core/elements.h"
#include "core/error.h"

namespace mlff::validate {

void ForceComparison::add(const Snapshot& snapshot, const std::string& phase, const Particles& particles, double energy, std::span<const double> forces) {
    ++frame_count;
    energy_differences_.push_back((snapshot.potential_energy - energy) / static_cast<double>(particles.atom_count()));
    for (size_t atom = 0; atom < particles.atom_count(); ++atom) {
        double squares = 0;
        for (size_t i = 3 * atom; i < 3 * atom + 3; ++i) {
            const double difference = snapshot.forces[i] - forces[i];
            squares += difference * difference;
            found.push_back(snapshot.forces[i]);
            expected.push_back(forces[i]);
        }
        force_squares_ += squares;
        const double size = std::sqrt(squares);
        if (size <= worst_force) continue;  // NaN goes on, and stays
        if (std::isnan(worst_force)) continue;
        worst_force = size;
        worst_atom = concat("atom ", atom, " (", element_symbol(particles.atomic_numbers[atom]), ") in step ", snapshot.step, " of ", phase);
    }
}

void ForceComparison::finish() {
    if (frame_count == 0) {
        force_rmse = energy_rmse = worst_force = std::numeric_limits<double>::quiet_NaN();
        return;
    }
    force_rmse = std::sqrt(force_squares_ / static_cast<double>(found.size()));
    double mean = 0, squares = 0;
    for (double difference : energy_differences_) mean += difference / static_cast<double>(frame_count);
    for (double difference : energy_differences_) squares += (difference - mean) * (difference - mean);
    energy_rmse = std::sqrt(squares / static_cast<double>(frame_count));
}

ForceComparison compare_forces(Session& reference, const Particles& particles, std::span<const ComparedSnapshot> snapshots) {
    ForceComparison comparison;
    SystemView system = particles.view();
    std::vector<double> forces(3 * particles.atom_count());
    for (const ComparedSnapshot& compared : snapshots) {
        double energy = std::numeric_limits<double>::quiet_NaN();
        system.positions = compared.snapshot->positions.data();
        Results results;
        results.outputs.energy = &energy;
        results.outputs.forces = forces.data();
        reference.evaluate({&system, 1}, {&results, 1});
        comparison.add(*compared.snapshot, compared.phase, particles, energy, forces);
    }
    comparison.finish();
    return comparison;
}

}  // namespace mlff::validate
