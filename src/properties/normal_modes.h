// SPDX-License-Identifier: MIT
// Harmonic vibrations of a structure at rest.
#pragma once

#include <span>
#include <vector>

namespace mlff {

struct NormalModes {
    std::vector<double> frequencies;     // [mode], 1/cm, ascending; that of an imaginary mode is negative
    std::vector<double> reduced_masses;  // [mode], u
    std::vector<double> displacements;   // [mode][atom][3]: of length 1
    // Of motions of the whole structure, which cost no energy: 0 where the forces and the Hessian are exact.
    std::vector<double> rigid_frequencies;

    int imaginary_count() const;
    double zero_point_energy() const;  // eV, of modes that are not imaginary
};

enum class RigidMotions { translations, translations_and_rotations };

// Of a Hessian [3 atom][3 atom], eV/angstrom^2; masses in u, positions in angstrom. Motions of the whole structure are
// projected out first.
NormalModes normal_modes(std::span<const double> hessian, std::span<const double> masses,
                         std::span<const double> positions, RigidMotions motions);

}  // namespace mlff
