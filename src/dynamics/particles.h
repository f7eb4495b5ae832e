// SPDX-License-Identifier: MIT
// Moving atoms: positions, velocities and masses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/system_view.h"

namespace mlff {

struct Particles {
    std::vector<int32_t> atomic_numbers;
    std::vector<double> masses;      // [atom], u
    std::vector<double> positions;   // [atom][3], angstrom
    std::vector<double> velocities;  // [atom][3], angstrom/fs
    std::vector<uint8_t> is_fixed;   // [atom]: 1 if it never moves; empty: all atoms are free
    SystemView environment;          // cell, periodicity, charge and spin; its pointers are not used
    // Degrees of freedom of the rigid motion that are at rest: 3 for the centre of mass, 6 with the rotation, 0 if a
    // bath moves it. They count if there are at least two atoms and none is fixed.
    int rigid_degrees = 3;

    Particles() = default;
    explicit Particles(const SystemView& system);  // at rest, with standard atomic masses

    size_t atom_count() const { return atomic_numbers.size(); }
    SystemView view() const;  // valid until the atoms change

    bool moves(size_t atom) const { return is_fixed.empty() || !is_fixed[atom]; }
    bool has_fixed_atoms() const;
    int64_t degrees_of_freedom() const;  // three per free atom, minus those of the rigid motion at rest

    double kinetic_energy() const;                                           // eV
    double temperature() const { return temperature_of(kinetic_energy()); }  // K
    double temperature_of(double kinetic_energy) const;                      // with these degrees of freedom
    Vec3 momentum() const;                                                   // u angstrom/fs
};

// Draws velocities from the Maxwell-Boltzmann distribution. Unless atoms are fixed, stops the centre of mass and, if
// nothing is periodic and Particles::rigid_degrees is 6, the rotation. Then scales the velocities so that
// Particles::temperature() is exactly `temperature`.
void set_temperature(Particles& particles, double temperature, uint64_t seed);

// Solves  inertia w = angular momentum  for w; zero for atoms on a line or at a point.
Vec3 angular_velocity(const Mat3& inertia, const Vec3& angular_momentum);

void remove_momentum(Particles& particles);
void remove_rotation(Particles& particles);  // about the centre of mass; does nothing for atoms on a line or at a point

}  // namespace mlff
