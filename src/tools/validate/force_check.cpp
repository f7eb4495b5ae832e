// SPDX-License-Identifier: MIT
#include "tools/validate/force_check.h"

#include <cmath>
#include <limits>

#include "core/elements.h"
#include "core/error.h"

namespace mlff::validate {

void ForceComparison::add(const Snapshot& snapshot, const std::string& phase, const Particles& particles, double energy,
                          std::span<const double> forces) {
    ++frame_count;
    energy_differences_.push_back((snapshot.potential_energy - energy) / static_cast<double>(particles.atom_count()));
    found.insert(found.end(), snapshot.forces.begin(), snapshot.forces.end());
    expected.insert(expected.end(), forces.begin(), forces.end());
    for (size_t i = 0; i < forces.size(); ++i)
        element_differences_[particles.atomic_numbers[i / 3]].add(snapshot.forces[i] - forces[i]);
    if (!force_differences_.add_frame(snapshot.step, particles.atomic_numbers, snapshot.forces, forces)) return;
    const WorstAtom& worst = force_differences_.worst();
    worst_atom = concat("atom ", worst.atom, " (", element_symbol(worst.atomic_number), ") in step ", worst.frame,
                        " of ", phase);
}

void ForceComparison::finish() {
    if (frame_count == 0) {
        force_rmse = energy_rmse = worst_force = std::numeric_limits<double>::quiet_NaN();
        return;
    }
    worst_force = force_differences_.lengths().largest();
    force_rmse = force_differences_.component_rms();
    for (const auto& [atomic_number, differences] : element_differences_)
        elements.push_back({atomic_number, differences.rms()});
    double mean = 0, squares = 0;
    for (double difference : energy_differences_) mean += difference / static_cast<double>(frame_count);
    for (double difference : energy_differences_) squares += (difference - mean) * (difference - mean);
    energy_rmse = std::sqrt(squares / static_cast<double>(frame_count));
}

ForceComparison compare_forces(Session& reference, const Particles& particles,
                               std::span<const ComparedSnapshot> snapshots) {
    ForceComparison comparison;
    SystemView system = particles.view();
    std::vector<double> forces(3 * particles.atom_count());
    for (const ComparedSnapshot& compared : snapshots) {
        double energy = std::numeric_limits<double>::quiet_NaN();
        system.positions = compared.snapshot->positions.data();
        Results results;
        results.outputs.energy = &energy;
        results.outputs.forces = forces.data();
        reference.evaluate_unchecked({&system, 1}, {&results, 1});
        comparison.add(*compared.snapshot, compared.phase, particles, energy, forces);
    }
    comparison.finish();
    return comparison;
}

}  // namespace mlff::validate
