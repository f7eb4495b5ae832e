// SPDX-License-Identifier: MIT
#include "properties/phonons/cell_map.h"

#include <cmath>

#include "core/error.h"

namespace mlff::phonons {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr double kLargest = 1e6;  // of a whole number, so that products fit

Integer3 row_times(const Integer3& row, const IntegerMatrix& matrix) {
    Integer3 result{};
    for (size_t k = 0; k < 3; ++k)
        for (size_t i = 0; i < 3; ++i) result[i] += row[k] * matrix[k][i];
    return result;
}

IntegerMatrix adjugate_of(const IntegerMatrix& m) {
    IntegerMatrix result{};
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) {
            const size_t a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
            result[i][j] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
        }
    return result;
}

}  // namespace

CellMap::CellMap(const Crystal& primitive, const Crystal& supercell, double tolerance) {
    const Mat3 to_primitive = inverse(primitive.lattice);
    for (size_t k = 0; k < 3; ++k) {
        const Vec3 vector = to_cartesian(to_primitive, supercell.lattice[k]);
        for (size_t i = 0; i < 3; ++i) {
            constexpr double kWhole = 1e-3;
            if (!(std::abs(vector[i]) < kLargest) || !(std::abs(vector[i] - std::round(vector[i])) < kWhole))
                fail(Status::system, "lattice vector ", k + 1,
                     " of the supercell is not made of whole primitive lattice vectors");
            supercell_[k][i] = std::llround(vector[i]);
        }
    }
    adjugate_ = adjugate_of(supercell_);
    size_ = 0;
    for (size_t k = 0; k < 3; ++k) size_ += supercell_[0][k] * adjugate_[k][0];
    size_ = std::abs(size_);
    const size_t cell_count = supercell.atom_count() / primitive.atom_count();
    if (size_ < 1 || static_cast<size_t>(size_) != cell_count || supercell.atom_count() % primitive.atom_count() != 0)
        fail(Status::system, "a supercell of ", supercell.atom_count(), " atoms is not ", size_, " primitive cells of ",
             primitive.atom_count());

    atoms_at_.assign(primitive.atom_count(), std::vector<size_t>(cell_count, kNone));
    for (size_t atom = 0; atom < supercell.atom_count(); ++atom) {
        size_t found = kNone;
        Integer3 cell{};
        for (size_t other = 0; other < primitive.atom_count() && found == kNone; ++other) {
            if (primitive.atomic_numbers[other] != supercell.atomic_numbers[atom]) continue;
            const Vec3 here = supercell.position(atom), there = primitive.position(other);
            const Vec3 offset =
                to_cartesian(to_primitive, {here[0] - there[0], here[1] - there[1], here[2] - there[2]});
            Vec3 rest{};
            for (size_t i = 0; i < 3; ++i) {
                if (!(std::abs(offset[i]) < kLargest))
                    fail(Status::system, "atom ", atom, " of the supercell is too far from its cell");
                cell[i] = std::llround(offset[i]);
                rest[i] = offset[i] - static_cast<double>(cell[i]);
            }
            rest = to_cartesian(primitive.lattice, rest);
            if (!(std::hypot(rest[0], rest[1], rest[2]) <= tolerance)) continue;
            if (!supercell.has_same_kind(atom, primitive, other))
                fail(Status::system, "atom ", atom, " of the supercell has ", supercell.masses[atom],
                     " u, and the atom of the primitive cell whose image it is ", primitive.masses[other],
                     " u: expected equal masses");
            found = other;
        }
        if (found == kNone) fail(Status::system, "atom ", atom, " of the supercell is no image of a primitive atom");
        const auto [entry, is_new] = index_of_.try_emplace(residue(cell), cells_.size());
        if (is_new) cells_.push_back(cell);
        if (cells_.size() > cell_count || atoms_at_[found][entry->second] != kNone)
            fail(Status::system, "atom ", atom, " of the supercell is at the place of another one");
        atoms_at_[found][entry->second] = atom;
        primitive_atoms_.push_back(found);
        atom_cells_.push_back(cell);
    }
    for (size_t atom = 0; atom < primitive.atom_count(); ++atom)
        home_atoms_.push_back(static_cast<int32_t>(atom_at(atom, {0, 0, 0})));
}

Integer3 CellMap::residue(const Integer3& cell) const {
    Integer3 result = row_times(cell, adjugate_);
    for (int64_t& part : result) part = ((part % size_) + size_) % size_;
    return result;
}

size_t CellMap::atom_at(size_t primitive_atom, const Integer3& cell) const {
    return atoms_at_[primitive_atom][index_of_.at(residue(cell))];
}

bool CellMap::is_kept_by(const IntegerMatrix& rotation) const {
    for (const Integer3& vector : supercell_) {
        Integer3 turned{};
        for (size_t i = 0; i < 3; ++i)
            for (size_t k = 0; k < 3; ++k) turned[i] += rotation[i][k] * vector[k];
        if (residue(turned) != Integer3{0, 0, 0}) return false;
    }
    return true;
}

}  // namespace mlff::phonons
