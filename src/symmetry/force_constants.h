// SPDX-License-Identifier: MIT
// The derivatives of all forces by the position of an atom, from forces at displaced positions. What a symmetry of the
// structure makes equal is computed once.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "symmetry/operation.h"

namespace mlff {

struct Displacement {
    int32_t atom = 0;
    Vec3 vector{};  // angstrom
};

struct DisplacedForces {
    Displacement displacement;
    std::vector<double> forces;  // [atom][3], eV/angstrom
};

// Atoms that operations take to each other, and those that keep an atom in its place.
class SymmetryGroup {
public:
    // The operations must be a group. An empty list: only the identity.
    SymmetryGroup(size_t atom_count, std::vector<SymmetryOperation> operations);

    size_t atom_count() const { return representative_.size(); }
    const std::vector<SymmetryOperation>& operations() const { return operations_; }
    // The first atom of those that are equal to `atom`, and an operation that takes it to `atom`.
    int32_t representative(size_t atom) const { return representative_[atom]; }
    const SymmetryOperation& from_representative(size_t atom) const { return operations_[path_[atom]]; }
    std::vector<const SymmetryOperation*> site_operations(int32_t atom) const;  // that keep it in its place

private:
    std::vector<SymmetryOperation> operations_;
    std::vector<int32_t> representative_;
    std::vector<size_t> path_;
};

// What to compute for second derivatives with an error of the second order in `step`: for each representative,
// displacements of length `step` which its site operations turn into three directions and their opposites.
// `axes`: directions that are tried first, such as lattice vectors.
std::vector<Displacement> displacements_for(const SymmetryGroup& group, double step, std::span<const Vec3> axes = {});

// An atom of which these displacements, turned by all operations, do not span three directions, so that
// force_derivatives() would refuse them: a representative. Nothing if there is none.
std::optional<int32_t> undetermined_atom(const SymmetryGroup& group, std::span<const Displacement> displacements);

// d(force on j) / d(position of i) for each atom i of `rows`: [row][j][3 of the force][3 of the position],
// eV/angstrom^2. With all displacements of displacements_for(), or with others of any atoms that operations turn into
// three directions; then without opposites the forces of the structure at rest must have been subtracted. Throws
// Error{argument} if they do not determine the answer.
std::vector<double> force_derivatives(const SymmetryGroup& group, std::span<const DisplacedForces> displaced,
                                      std::span<const int32_t> rows);

}  // namespace mlff
