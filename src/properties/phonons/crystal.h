// SPDX-License-Identifier: MIT
// A cell of atoms that repeats in three directions, and cells of other sizes of the same crystal.
#pragma once

#include <array>
#include <vector>

#include "core/matrix3.h"
#include "dynamics/particles.h"

namespace mlff::phonons {

struct Crystal {
    Mat3 lattice{};  // vectors in rows, angstrom
    std::vector<int32_t> atomic_numbers;
    std::vector<double> positions;  // [atom][3], angstrom
    std::vector<double> masses;     // [atom], u

    size_t atom_count() const { return atomic_numbers.size(); }
    Vec3 position(size_t atom) const { return {positions[3 * atom], positions[3 * atom + 1], positions[3 * atom + 2]}; }
    double volume() const;
    SystemView view() const;  // valid until the crystal changes
    // Of one element and one mass: atoms of different isotopes vibrate in different ways.
    bool has_same_kind(size_t atom, const Crystal& other, size_t other_atom) const;
    void add_atom(int32_t atomic_number, const Vec3& position, double mass);
};

// In lattice vectors of `lattice`, and back: angstrom.
Vec3 to_fractional(const Mat3& lattice, const Vec3& position);
Vec3 to_cartesian(const Mat3& lattice, const Vec3& fractional);

// Masses in u, which files may have rounded.
bool is_same_mass(double a, double b);

// Throws Error{system} if the atoms are no crystal: not periodic in three directions, without atoms, charged, or with
// two atoms at one place.
Crystal make_crystal(const Particles& particles);

// `counts` cells along the three vectors. As in phonopy: all images of atom 0 come first, those along the first vector
// next to each other. Throws Error{argument} for counts below 1 or too many atoms.
Crystal make_supercell(const Crystal& cell, const std::array<int64_t, 3>& counts);

// One atom of each set that translations by `lattice` make equal, within `tolerance` (angstrom): the first. Throws
// Error{system} if `lattice` does not divide the crystal, or takes an atom to one of another mass.
Crystal cell_of_lattice(const Crystal& crystal, const Mat3& lattice, double tolerance);

}  // namespace mlff::phonons
