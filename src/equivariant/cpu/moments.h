// SPDX-License-Identifier: MIT
// The messages of the first layer by moments (equivariant/plan/moment_map.h), for the atoms of a tile, and the reverse.
#pragma once

#include "equivariant/cpu/edge_state.h"

namespace mlff::equivariant {

// Memory of one thread.
template <class Real>
struct MomentScratch {
    EdgeBatch<Real> batch;
    Buffer<Real> functions, slopes;  // [edge][stride] of a batch; forward as a matrix in strips, in reverse as rows
    Buffer<Real> shares;             // [row][kEdgesPerBatch]
    Buffer<Real> products;           // [edge][padded row_count]: functions or slopes times the gradient of the moments
    Buffer<Real> by_shares, by_slopes;  // [row][kEdgesPerBatch]: the products, transposed
    Buffer<Real> moments;               // [atom of the tile][padded row_count][stride]
    Buffer<Real> gradient;              // of the moments of one atom, as a matrix [stride][padded row_count]
    std::vector<int64_t> next;          // [atom of the tile]: its next edge
    std::vector<const Real*> from;
    std::vector<Real*> to;
};

struct TileAtoms {
    const int64_t* atoms = nullptr;
    int count = 0;
};

// Writes messages[atom of the tile][linear_layout.size], before the division, and densities[atom of the tile].
template <class Real>
void compute_moment_messages(const LayerInput<Real>& layer, const EdgeState& state,
                             const std::vector<int>& elements_present, TileAtoms tile, MomentScratch<Real>& scratch,
                             Real* messages, Real* densities);

// From the gradients of messages and densities to state.vector_gradient.
template <class Real>
void reverse_moment_messages(const LayerInput<Real>& layer, const std::vector<int>& elements_present, TileAtoms tile,
                             const Real* messages_gradient, const Real* densities_gradient,
                             MomentScratch<Real>& scratch, EdgeState& state);

}  // namespace mlff::equivariant
