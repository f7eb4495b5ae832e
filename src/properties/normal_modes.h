// SPDX-License-Identifier: MIT
// Harmonic vibrations of a structure at rest.
#pragma once

#include <span>
#include <vector>

#include "core/system_view.h"

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

// About which axes the structure turns without any force: three of a molecule, two of one on a line, one of a system
// that is periodic in one direction, none of crystals and single atoms.
std::vector<Vec3> free_rotation_axes(const SystemView& system, bool is_linear);

// Of a Hessian [3 atom][3 atom], eV/angstrom^2; masses in u, positions in angstrom. Translations, and rotations about
// these axes through the centre of mass, are projected out first.
NormalModes normal_modes(std::span<const double> hessian, std::span<const double> masses,
                         std::span<const double> positions, std::span<const Vec3> rotation_axes);

}  // namespace mlff
