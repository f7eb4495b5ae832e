// SPDX-License-Identifier: MIT
// Compares forces along a trajectory with those of a reference at the same positions.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/session.h"
#include "tools/validate/differences.h"
#include "tools/validate/trajectory.h"

namespace mlff::validate {

struct ElementError {
    int32_t atomic_number = 0;
    double force_rmse = 0;  // eV/angstrom, of components
};

struct ForceComparison {
    size_t frame_count = 0;
    double force_rmse = 0;   // eV/angstrom, of components
    double energy_rmse = 0;  // eV/atom, after subtracting the mean difference: models may have different energy zeros
    std::vector<ElementError> elements;   // ascending
    double worst_force = 0;               // eV/angstrom, length of the largest difference on one atom
    std::string worst_atom;               // "atom 5 (O) in step 300 of NVE"
    std::vector<double> found, expected;  // components of forces, all of them, for a parity plot

    // Adds one frame to the sums.
    void add(const Snapshot& snapshot, const std::string& phase, const Particles& particles, double energy,
             std::span<const double> forces);
    void finish();  // turns the sums into means

private:
    ForceDifferences force_differences_;
    std::map<int32_t, Differences> element_differences_;  // of components
    std::vector<double> energy_differences_;              // eV/atom
};

// A snapshot and the phase it comes from.
struct ComparedSnapshot {
    const Snapshot* snapshot;
    std::string phase;
};

// Throws Error like Session::evaluate.
ForceComparison compare_forces(Session& reference, const Particles& particles,
                               std::span<const ComparedSnapshot> snapshots);

}  // namespace mlff::validate
