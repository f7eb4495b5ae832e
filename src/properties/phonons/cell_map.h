// SPDX-License-Identifier: MIT
// The atoms of a supercell as atoms of the primitive cell, in cells with whole numbers.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "properties/phonons/crystal.h"

namespace mlff::phonons {

using Integer3 = std::array<int64_t, 3>;
using IntegerMatrix = std::array<Integer3, 3>;

class CellMap {
public:
    // Atoms may be `tolerance` (angstrom) from where the primitive cell has them. Throws Error{system} if the supercell
    // is not made of whole primitive cells, or has other masses.
    CellMap(const Crystal& primitive, const Crystal& supercell, double tolerance);

    size_t primitive_count() const { return home_atoms_.size(); }
    size_t atom_count() const { return primitive_atoms_.size(); }
    size_t cell_count() const { return cells_.size(); }
    size_t primitive_atom(size_t atom) const { return primitive_atoms_[atom]; }
    const Integer3& cell(size_t atom) const { return atom_cells_[atom]; }  // in primitive lattice vectors
    // The cells of the supercell, one of each set that it makes equal.
    const std::vector<Integer3>& cells() const { return cells_; }
    // The atom of the supercell that is this one of the primitive cell, in this cell or in one equal to it.
    size_t atom_at(size_t primitive_atom, const Integer3& cell) const;
    // The atoms in cell 0, by primitive atom.
    const std::vector<int32_t>& home_atoms() const { return home_atoms_; }
    // Whether lattice vectors of the supercell, turned, are such again. `rotation` is in primitive lattice vectors and
    // acts on columns.
    bool is_kept_by(const IntegerMatrix& rotation) const;

private:
    Integer3 residue(const Integer3& cell) const;

    IntegerMatrix supercell_{};  // its vectors in primitive ones, in rows
    IntegerMatrix adjugate_{};   // of `supercell_`
    int64_t size_ = 1;           // its determinant without sign: the number of cells
    std::vector<size_t> primitive_atoms_;
    std::vector<Integer3> atom_cells_, cells_;
    std::vector<int32_t> home_atoms_;
    std::map<Integer3, size_t> index_of_;        // of a cell, by residue
    std::vector<std::vector<size_t>> atoms_at_;  // [primitive atom][cell]
};

}  // namespace mlff::phonons
