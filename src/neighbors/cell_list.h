// SPDX-License-Identifier: MIT
// Atoms sorted into the bins of a grid aligned with the lattice.
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
    Buffer<int32_t> bin;           // [sorted atom]
    Buffer<float> x, y, z;         // [atom] wrapped, relative to the middle of the grid

    // `is_one_bin` as in choose_grid(). Throws Error{system} for atoms, cells or reaches that cannot be searched.
    void build(const SystemView& system, double search_reach, bool is_one_bin, ThreadTeam& team);
    // Updates the positions of the sites. Their order and wraps stay the same.
    void move_sites(const SystemView& system, ThreadTeam& team);

private:
    void sort_atoms(const SystemView& system, ThreadTeam& team);
    void place_atoms(const SystemView& system, ThreadTeam& team);

    Buffer<int32_t> unsorted_bin_;
};

}  // namespace mlff
