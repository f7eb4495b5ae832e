// SPDX-License-Identifier: MIT
// Atoms sorted by element, then by cell of a grid whose x runs fastest. The atoms of one element within a distance are
// then a few runs of consecutive atoms: one for each column of cells along x. Nothing is stored for pairs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispersion/cpu/atom_set.h"

namespace mlff::dispersion::cpu {

// Cells [first, last] of a grid, one after the other along x.
struct CellRow {
    int64_t first = 0, last = 0;
};

class Columns {
public:
    // `slot_count`: of all elements.
    void sort(const AtomSet& atoms, size_t slot_count);

    const std::vector<int32_t>& present() const { return present_; }  // slots of elements that there are
    // Sorted coordinates, padded with readable numbers.
    const double* coordinate(size_t axis) const { return coordinates_[axis].data(); }
    int64_t padded_count() const { return static_cast<int64_t>(coordinates_[0].size()); }
    const std::vector<int32_t>& order() const { return order_; }  // the sorted atoms

    // The rows of cells that have all atoms within `distance` of a position.
    void find_rows(const double* position, double distance, std::vector<CellRow>& rows) const;
    // The runs of sorted atoms of present element `e` in these rows: begin, end, begin, end, ...
    void find_runs(const std::vector<CellRow>& rows, size_t e, std::vector<int32_t>& runs) const;

private:
    void choose_grid(const AtomSet& atoms);
    int64_t cell_along(size_t axis, double x) const;

    std::vector<int32_t> present_, order_;
    std::vector<int32_t> index_of_slot_;  // scratch memory of sort()
    std::array<std::vector<double>, 3> coordinates_;
    std::vector<int32_t> start_;  // [present element][cell], and the end
    std::vector<int64_t> keys_;   // [atom]
    std::array<double, 3> low_{};
    std::array<int64_t, 3> cells_{};
    int64_t cell_count_ = 0;
    double side_ = 1;
};

}  // namespace mlff::dispersion::cpu
