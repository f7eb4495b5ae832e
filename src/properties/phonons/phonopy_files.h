// SPDX-License-Identifier: MIT
// The files of phonopy: displaced supercells (phonopy_disp.yaml) and their forces (FORCE_SETS).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/phonons/cell_map.h"
#include "symmetry/force_constants.h"

namespace mlff::phonons {

// What phonopy is asked to do.
struct PhonopyTask {
    Crystal unit_cell, supercell;
    IntegerMatrix supercell_matrix{};       // rows as in the file
    std::optional<Mat3> primitive_lattice;  // vectors in rows
    std::vector<Displacement> displacements;
    std::optional<double> tolerance;  // of symmetry, angstrom
};

// The file may be hostile. Throws Error{format}, naming `where`.
PhonopyTask parse_phonopy_task(std::string_view text, const std::string& where);

// phonopy takes it from the units that the supercell comes in the order of make_supercell().
std::string phonopy_task_text(const PhonopyTask& task);

// Displacements of single atoms with the forces on all of `atom_count`. Throws Error{format}.
std::vector<DisplacedForces> parse_force_sets(std::string_view text, size_t atom_count, const std::string& where);
std::string force_sets_text(const std::vector<DisplacedForces>& displaced, size_t atom_count);

}  // namespace mlff::phonons
