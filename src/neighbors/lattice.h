// SPDX-License-Identifier: MIT
// The geometry of a cell with any combination of periodic directions.
#pragma once

#include <array>

#include "core/system_view.h"

namespace mlff {

// A complete, invertible set of lattice vectors: rows that are not periodic are replaced by unit vectors
// perpendicular to the periodic ones (and to each other).
struct Lattice {
    Mat3 vectors;   // rows
    Mat3 inverse;   // fractional = position . inverse
    Vec3 height;    // distance between opposite faces, angstrom
    double volume;  // of the parallelepiped of `vectors`
    std::array<bool, 3> periodic;
};

// Throws Error{system} for non-finite numbers, a periodic row that is zero, or periodic rows that are (nearly) linearly
// dependent.
Lattice make_lattice(const SystemView& system);

// The volume that stresses are divided by: |det cell|. A zero row in a non-periodic direction counts as perpendicular
// to the others, with length (extent of the atoms along it + 2 cutoff + 1 angstrom).
double stress_volume(const SystemView& system, double cutoff);
// True if stress_volume reads positions: some lattice vector is missing.
bool stress_volume_needs_positions(const SystemView& system);

}  // namespace mlff
