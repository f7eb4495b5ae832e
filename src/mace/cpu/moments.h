// SPDX-License-Identifier: MIT
// The messages of the first layer by way of moments (moment_map.h), for the atoms of a tile, and the reverse.
#pragma once

#include "mace/cpu/edge_state.h"
#include "mace/cpu/plan_names.h"

namespace mlff::mace::cpu {

// Memory of one worker.
template <class Real>
struct MomentScratch {
    EdgeBatch<Real> batch;
    Buffer<Real> functions, slopes;  // of a batch: a matrix [edge][stride] forward, rows [edge][stride] in reverse
    Buffer<Real> shares;             // [row][kEdgesPerBatch]
    Buffer<Real> products;  // [edge][padded row_count]: of functions or slopes with the gradient of the moments
    Buffer<Real> by_shares, by_slopes;  // [row][kEdgesPerBatch]: these turned around
    Buffer<Real> moments;               // [atom of the tile][padded row_count][stride]
    Buffer<Real> gradient;              // of the moments of one atom, as a matrix [stride][padded row_count]
    std::vector<int64_t> next;          // [atom of the tile]: how far its edges have been worked through
    std::vector<const Real*> from;
    std::vector<Real*> to;
};

struct TileAtoms {
    const int64_t* atoms = nullptr;
    int count = 0;
};

// messages: [atom of the tile][linear_layout.size], before they are divided; densities: [atom of the tile]
template <class Real>
void compute_moment_messages(const LayerInput<Real>& layer, const EdgeState<Real>& state,
                             const std::vector<int>& elements_present, TileAtoms tile, MomentScratch<Real>& scratch,
                             Real* messages, Real* densities);

// From the gradients of the same to those of the edges.
template <class Real>
void reverse_moment_messages(const LayerInput<Real>& layer, const std::vector<int>& elements_present, TileAtoms tile,
                             const Real* messages_gradient, const Real* densities_gradient,
                             MomentScratch<Real>& scratch, EdgeState<Real>& state);

}  // namespace mlff::mace::cpu
