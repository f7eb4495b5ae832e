// SPDX-License-Identifier: MIT
// Rotations and reflections after which a molecule looks as before.
#pragma once

#include <span>

#include "symmetry/operation.h"

namespace mlff {

struct PointGroup {
    std::vector<SymmetryOperation> operations;  // a group; of a molecule on a line, a finite part of it
    bool is_linear = false;                     // two atoms or more on a line
    int symmetry_number = 1;                    // of a rotor: by how many rotations it becomes itself
};

// Of atoms that nothing repeats. Atoms are equal if they are of one element and, where masses [atom] are given,
// isotope, and an operation takes one to the other within `tolerance`, angstrom.
PointGroup find_point_group(const SystemView& molecule, double tolerance, std::span<const double> masses = {});

}  // namespace mlff
