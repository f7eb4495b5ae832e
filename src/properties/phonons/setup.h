// SPDX-License-Identifier: MIT
// The cells of a calculation of phonons with their symmetry, and the forces of displaced supercells.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/session.h"
#include "properties/phonons/space_group.h"
#include "symmetry/force_constants.h"

namespace mlff::phonons {

struct SetupOptions {
    bool uses_symmetry = true;              // false: only translations, as without spglib
    bool finds_primitive_cell = true;       // else the unit cell is taken as primitive
    std::optional<Mat3> primitive_lattice;  // instead of what spglib finds; vectors in rows
    double tolerance = 1e-5;                // of symmetry, angstrom
};

struct Setup {
    Crystal unit_cell, primitive, supercell;
    std::optional<SpaceGroup> space_group;        // nothing without spglib or symmetry
    std::vector<FractionalOperation> operations;  // of the primitive cell and its isotopes, that keep the supercell
    CellMap map;
    SymmetryGroup group;  // of the supercell, whatever the masses: what makes forces equal

    bool has_mirrors() const;  // in `group`; or other operations that make a left hand a right one
};

// Throws Error for cells that are not of one crystal.
Setup make_setup(const Crystal& unit_cell, const Crystal& supercell, const SetupOptions& options);

// Energies are not needed here. `goes_on` learns how many displacements are done, and returns false to stop: then the
// result is shorter. Throws Error{system} for forces that are not finite.
std::vector<DisplacedForces> forces_of(Session& session, const Crystal& supercell,
                                       std::span<const Displacement> displacements,
                                       const std::function<bool(size_t)>& goes_on);

struct RestState {
    double largest_force = 0;        // eV/angstrom
    std::optional<double> pressure;  // eV/angstrom^3; nothing if the model gives no virial
};
RestState rest_state(Session& session, const Crystal& cell);

}  // namespace mlff::phonons
