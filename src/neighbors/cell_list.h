// SPDX-License-Identifier: MIT
// Atoms sorted into the bins of a grid that follows the lattice.
//
// Bins are numbered with direction 0 fastest: neighbouring bins along direction 0 hold one contiguous run of
// sorted atoms. Periodic directions are wrapped into the cell; in others the outermost bins have no outer end.
#pragma once

#include <array>
#include <cstdint>

#include "core/buffer.h"
#include "core/system_view.h"
#include "core/threads.h"
#include "neighbors/lattice.h"

namespace mlff {

// An atom of the list. One record, because pairs need all of it and visit atoms in scattered order.
struct Site {
    Vec3 position;                // as given, angstrom
    std::array<int32_t, 3> wrap;  // lattice vectors to subtract to get into the cell
    int32_t atom;                 // original index
};

constexpr int kMostImages = 500;  // in one direction; image numbers are packed in 10 bits

struct CellList {
    Lattice lattice;
    double reach = 0;                 // pairs up to this distance can be found
    std::array<int32_t, 3> bin_count{};
    Vec3 bin_width;                   // in fractional coordinates
    double bin_margin = 0;            // an atom may sit this far outside its bin, angstrom
    double filter_margin = 0;         // |distance from x, y, z below - distance by edge_vector| is less, angstrom

    Buffer<int32_t> first_in_bin;     // [bins + 1], into the sorted atoms
    Buffer<Site> sites;               // [atom], sorted by bin, then by original index
    Buffer<int32_t> bin;              // [atom] of the sorted atom
    Buffer<float> x, y, z;            // [atom] wrapped, relative to the middle of the grid

    // Throws Error{system} for atoms, cells and reaches that cannot be searched.
    void build(const SystemView& system, double search_reach, ThreadTeam& team);
    // New positions for the sites, which keep their order and their wraps.
    void move_sites(const SystemView& system, ThreadTeam& team);

private:
    struct Survey;
    Survey survey_atoms(const SystemView& system, ThreadTeam& team);
    void place_grid(const Survey& survey, int64_t atom_count);
    void choose_margins(const Survey& survey);
    void check_reach(int64_t atom_count) const;
    void choose_bins(int64_t atom_count);
    void sort_atoms(const SystemView& system, ThreadTeam& team);
    void place_atoms(const SystemView& system, ThreadTeam& team);
    int32_t bin_of(const double* position) const;

    Vec3 grid_origin_{};              // in fractional coordinates
    Vec3 grid_length_{};
    Vec3 grid_middle_{};              // angstrom
    Buffer<int32_t> unsorted_bin_;
};

}  // namespace mlff
