// SPDX-License-Identifier: MIT
// Finds all pairs of a CellList within a distance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/buffer.h"
#include "core/system_view.h"
#include "core/threads.h"
#include "neighbors/cell_list.h"
#include "neighbors/stencil.h"

namespace mlff {

// Consecutive neighbours in the same periodic image.
struct ImageRun {
    uint32_t image;
    int32_t count;
};

// The neighbours of the sorted atoms. Chunk c holds those of atoms c * atoms_per_chunk and up, one atom after the
// other. The chunk size depends only on the number of atoms.
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

// Which pairs to keep.
struct PairRule {
    double cutoff_squared = 0;  // if `exact`: compared with edge_vector
    bool exact = true;          // if false: all pairs within the reach, and some up to 2 filter_margin beyond it
    bool half = false;          // as in NeighborOptions
    int64_t most_pairs = std::numeric_limits<int64_t>::max();
};

class PairSearch {
public:
    PairSearch();
    ~PairSearch();

    // False if there are more than rule.most_pairs. The search then ended early, there are no pairs, and their memory
    // has been released.
    bool find(const CellList& cells, const Mat3& cell, const PairRule& rule, ThreadTeam& team, PairList& pairs);

    struct Scratch;

private:
    std::vector<StencilRow> stencil_;
    std::vector<Scratch> scratch_;  // one for each worker
};

}  // namespace mlff
