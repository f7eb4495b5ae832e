// SPDX-License-Identifier: MIT
// Force constants of a crystal: second derivatives of the energy by two atoms of a supercell.
#pragma once

#include <span>
#include <vector>

#include "properties/phonons/cell_map.h"
#include "symmetry/force_constants.h"

namespace mlff::phonons {

struct ForceConstants {
    // [primitive atom][atom of the supercell][3][3], eV/angstrom^2: -dF(atom of the supercell)/du(primitive atom). The
    // first of the two directions is that of the displacement.
    std::vector<double> blocks;
    // How far, before it was imposed, the sum over all atoms was from zero, and a block from that of the exchanged
    // atoms: the largest elements, eV/angstrom^2.
    double acoustic_violation = 0, index_violation = 0;
};

// Forces in eV/angstrom, of displacements of the atoms of the supercell. With index symmetry and the acoustic sum rule
// imposed, both exactly. Throws Error{argument} if the displacements do not determine all.
ForceConstants force_constants_from(const SymmetryGroup& group, const CellMap& map,
                                    std::span<const DisplacedForces> displaced);

}  // namespace mlff::phonons
