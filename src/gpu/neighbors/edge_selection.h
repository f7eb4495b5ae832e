// SPDX-License-Identifier: MIT
// The part of a step that needs no search: how far atoms have moved, which candidates are within the cutoff, and their
// edges. Nothing here waits for the device or allocates memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/host_device.h"
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
    // A bit for each candidate, set if it is within the cutoff: see first_mark(). Words of a sorted atom follow each
    // other.
    uint32_t* marks = nullptr;

    GpuNeighborReport* report = nullptr;
    int64_t* first = nullptr;    // [atom + 1]
    int32_t* sender = nullptr;   // [candidate], like the following arrays; null if not wanted
    int32_t* shift = nullptr;    // [candidate][3]
    Real* vector = nullptr;      // [candidate][3]
    Real* distance = nullptr;    // [candidate]
    int64_t* reverse = nullptr;  // [candidate]

    bool operator==(const Selection&) const = default;
};

constexpr int64_t kMarksPerWord = 32;

// The first word of marks of a sorted atom, given its first candidate. Words of atoms do not overlap, since each atom
// begins a word.
MLFF_HOST_DEVICE inline int64_t first_mark(int64_t first_candidate, int64_t sorted_atom) {
    return first_candidate / kMarksPerWord + sorted_atom;
}
inline int64_t mark_count(int64_t candidate_count, int64_t atom_count) {
    return first_mark(candidate_count, atom_count) + 1;
}

// Fills in the edges and the report, for the positions of the search. Keeps the order of the candidates.
template <class Real>
void select_edges(const Selection<Real>& selection, const ExclusiveScan& scan, cudaStream_t stream);

// The same for other positions. Measures displacements since the search first; the report says if they are too large.
// Sets *cleared, unless it is null, to 0.
template <class Real>
void select_edges_of_moved(const Selection<Real>& selection, const double* positions, int* cleared,
                           const ExclusiveScan& scan, cudaStream_t stream);

}  // namespace mlff::gpu
