// SPDX-License-Identifier: MIT
// Finds the pairs of a CellList.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/buffer.h"
#include "core/system_view.h"
#include "core/threads.h"
#include "neighbors/cell_list.h"
#include "neighbors/stencil.h"

namespace mlff {

// Neighbours that lie in the same image, one after the other.
struct ImageRun {
    uint32_t image;
    int32_t count;
};

// The neighbours of sorted atoms. Chunk c holds those of atoms c * atoms_per_chunk and up, one atom after the
// other; the split depends on the number of atoms alone.
struct PairList {
    struct Chunk {
        Buffer<int32_t> neighbor;  // sorted index
        Buffer<ImageRun> run;
    };
    int64_t atom_count = 0;
    int64_t atoms_per_chunk = 1;
    int64_t chunk_count = 0;
    std::vector<Chunk> chunk;        // at least chunk_count
    Buffer<int32_t> run_count;       // [sorted atom]
    Buffer<int32_t> neighbor_count;  // [original atom]

    void resize(int64_t new_atom_count);
    int64_t chunk_begin(int64_t index) const { return index * atoms_per_chunk; }
    int64_t chunk_end(int64_t index) const { return std::min(atom_count, (index + 1) * atoms_per_chunk); }
};

// Which pairs are wanted.
struct PairRule {
    double cutoff_squared = 0;  // decides, by edge_vector, if `exact`
    bool exact = true;          // otherwise all pairs within the reach, and some up to 2 filter_margin beyond it
    bool half = false;          // as in NeighborOptions
};

class PairSearch {
public:
    PairSearch();
    ~PairSearch();

    void find(const CellList& cells, const Mat3& cell, const PairRule& rule, ThreadTeam& team, PairList& pairs);

    struct Scratch;

private:
    std::vector<StencilRow> stencil_;
    std::vector<Scratch> scratch_;  // one for each worker
};

}  // namespace mlff
