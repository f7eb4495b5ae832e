// SPDX-License-Identifier: MIT
// Atoms sorted into the bins of a grid that follows the lattice.
#pragma once

#include <cstdint>

#include "core/buffer.h"
#include "core/system_view.h"
#include "core/threads.h"
#include "neighbors/cell_grid.h"

namespace mlff {

struct CellList {
    CellGrid grid;
    Buffer<int32_t> first_in_bin;  // [bins + 1], into the sorted atoms
    Buffer<Site> sites;            // [atom], sorted by bin, then by original index
    Buffer<int32_t> bin;           // [atom] of the sorted atom
    Buffer<float> x, y, z;         // [atom] wrapped, relative to the middle of the grid

    // Throws Error{system} for atoms, cells and reaches that cannot be searched.
    void build(const SystemView& system, double search_reach, ThreadTeam& team);
    // New positions for the sites, which keep their order and their wraps.
    void move_sites(const SystemView& system, ThreadTeam& team);

private:
    void sort_atoms(const SystemView& system, ThreadTeam& team);
    void place_atoms(const SystemView& system, ThreadTeam& team);

    Buffer<int32_t> unsorted_bin_;
};

}  // namespace mlff
