// SPDX-License-Identifier: MIT
// Atoms that move: positions, velocities and masses.
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
    SystemView environment;          // cell, boundaries, charge and spin; its pointers are not used

    Particles() = default;
    explicit Particles(const SystemView& system);  // at rest, with the masses of the elements

    size_t atom_count() const { return atomic_numbers.size(); }
    SystemView view() const;  // valid until the atoms change

    double kinetic_energy() const;  // eV
    // From the kinetic energy, with three degrees of freedom less for the centre of mass, which is at rest.
    double temperature() const;
    Vec3 momentum() const;  // u angstrom/fs
};

// Velocities of the Maxwell-Boltzmann distribution, then the centre of mass at rest and, where nothing is periodic, no rotation; scaled to give
// exactly `temperature` in Particles::temperature().
void set_temperature(Particles& particles, double temperature, uint64_t seed);

void remove_momentum(Particles& particles);
void remove_rotation(Particles& particles);  // about the centre of mass; atoms on a line or a point are left alone

}  // namespace mlff
