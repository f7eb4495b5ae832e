// SPDX-License-Identifier: MIT
// The part of a step that needs no search: how far atoms have moved, which candidates are within the cutoff, and their
// edges. Nothing here waits for the device or allocates memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/system_view.h"
#include "gpu/neighbors/candidate_search.h"
#include "gpu/neighbors/exclusive_scan.h"
#include "gpu/neighbors/gpu_neighbor_list.h"
#include "neighbors/displacements.h"

namespace mlff::gpu {

// The arguments of a step without a search. Equal arguments launch the same kernels with the same parameters.
template <class Real>
struct Selection {
    int64_t atom_count = 0;
    Mat3 cell{};
    double cutoff = 0;
    double skin = 0;
    Site* sites = nullptr;                          // [sorted atom]
    const double* searched = nullptr;               // [atom][3], the positions of the search
    const int64_t* candidate_first = nullptr;       // [sorted atom + 1]
    const Candidate* candidates = nullptr;          // [candidate]
    const int32_t* candidate_reverse = nullptr;     // [candidate], as CandidateSearch::reverse
    LargestDisplacements* displacements = nullptr;  // [kMostReductionBlocks + 1]; the last is the result
    int32_t* count = nullptr;                       // [atom + 1], the last is 0
    int32_t* edge_of_candidate = nullptr;           // [candidate]: index among its atom's edges; -1 beyond the cutoff

    GpuNeighborReport* report = nullptr;
    int64_t* first = nullptr;    // [atom + 1]
    int32_t* sender = nullptr;   // [candidate], like the following arrays; null if not wanted
    int32_t* shift = nullptr;    // [candidate][3]
    Real* vector = nullptr;      // [candidate][3]
    Real* distance = nullptr;    // [candidate]
    int64_t* reverse = nullptr;  // [candidate]

    bool operator==(const Selection&) const = default;
};

// Updates the positions of the sites, and measures their displacements since the search.
template <class Real>
void move_sites(const Selection<Real>& selection, const double* positions, cudaStream_t stream);

// Fills in the edges and the report. Keeps the order of the candidates.
template <class Real>
void select_edges(const Selection<Real>& selection, const ExclusiveScan& scan, cudaStream_t stream);

}  // namespace mlff::gpu
