// SPDX-License-Identifier: MIT
// Atoms on the GPU, sorted into the bins of a CellGrid in the order of the CPU's CellList.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/system_view.h"
#include "gpu/neighbors/exclusive_scan.h"
#include "gpu/runtime/device_buffer.h"
#include "gpu/runtime/reduction.cuh"
#include "neighbors/cell_grid.h"
#include "neighbors/stencil.h"

namespace mlff::gpu {

class SortedSites {
public:
    SortedSites();

    // `system.positions` is on the device; there must be at least one atom. `is_one_bin` as in choose_grid(). Waits for
    // the stream once. Throws like CellList::build.
    void build(const SystemView& system, double search_reach, bool is_one_bin, cudaStream_t stream);

    // Sorts the atoms of the last build() into columns of a grid whose cubes have about 32 atoms, along the columns,
    // which turn where they end: 32 atoms in a row fill about a cube. Does not wait for the stream.
    void sort_into_runs(const SystemView& system, cudaStream_t stream);
    const int32_t* runs() const { return runs_.data(); }  // [atom]: original indices

    const CellGrid& grid() const { return grid_; }
    int64_t atom_count() const { return sites_.size(); }
    BinnedAtoms binned() const { return {grid_.bin_count, grid_.lattice.periodic, first_in_bin_.data()}; }
    Site* sites() const { return sites_.data(); }          // [atom], sorted by bin, then by original index
    const int32_t* bin() const { return bin_.data(); }     // [sorted atom]
    const float4* place() const { return place_.data(); }  // [sorted atom], WrappedAtom::place

private:
    AtomSurvey survey_atoms(const SystemView& system, const Lattice& lattice, cudaStream_t stream);
    void sort_atoms(const SystemView& system, cudaStream_t stream);
    // Counts the atoms of each bin of the grid and collects them there, in any order.
    template <class Grid>
    void collect_in_bins(const Grid& grid, DeviceBuffer<int32_t>& first_in_bin, int64_t bins, const SystemView& system,
                         cudaStream_t stream);

    CellGrid grid_;
    DeviceBuffer<int32_t> first_in_bin_;  // [bins + 1], into the sorted atoms
    DeviceBuffer<Site> sites_;
    DeviceBuffer<int32_t> bin_;
    DeviceBuffer<float4> place_;

    DeviceBuffer<AtomSurvey> surveys_;
    PinnedValue<AtomSurvey> survey_;
    ExclusiveScan scan_;
    DeviceBuffer<int32_t> unsorted_bin_;  // [original atom]
    DeviceBuffer<int32_t> count_;         // [bins + 1]
    DeviceBuffer<int32_t> atom_of_slot_;  // atoms by bin, unordered within a bin
    DeviceBuffer<int32_t> first_in_run_bin_;
    DeviceBuffer<int32_t> runs_;
};

}  // namespace mlff::gpu
