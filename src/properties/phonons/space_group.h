// SPDX-License-Identifier: MIT
// The symmetry of a crystal, which spglib finds. Builds without spglib know only translations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "properties/phonons/cell_map.h"
#include "symmetry/operation.h"

namespace mlff::phonons {

bool has_spglib();

// Forces do not depend on masses, vibrations do.
enum class Alike {
    elements,  // atoms of one element are alike
    isotopes,  // if they have the same mass, too
};

struct SpaceGroup {
    int number = 0;               // 1 to 230
    std::string symbol;           // "Fd-3m"
    Mat3 conventional_lattice{};  // vectors in rows, as the crystal is turned
    Mat3 primitive_lattice{};     // the standard one of that
};

// x -> rotation . x + translation, in lattice vectors.
struct FractionalOperation {
    IntegerMatrix rotation{};
    Vec3 translation{};
};

// Of a crystal whose isotopes are told apart. Nothing without spglib. Throws Error{system} if spglib cannot tell, with
// atoms that overlap for example.
std::optional<SpaceGroup> find_space_group(const Crystal& crystal, double tolerance);

std::vector<FractionalOperation> only_identity();

// Only the identity without spglib.
std::vector<FractionalOperation> find_operations(const Crystal& primitive, double tolerance, Alike alike);

// Those of elements that keep the supercell, each with all translations among its cells, as motions of its atoms.
// Throws Error{system} if an operation takes an atom to where none is, Error{argument} if they need too much memory.
std::vector<SymmetryOperation> operations_of_supercell(const Crystal& primitive, const CellMap& map,
                                                       const std::vector<FractionalOperation>& operations,
                                                       double tolerance);

}  // namespace mlff::phonons
