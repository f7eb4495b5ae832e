// SPDX-License-Identifier: MIT
#include "gpu/neighbors/edge_selection.h"

#include "gpu/neighbors/team.cuh"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/reduction.cuh"
#include "neighbors/neighbor_list.h"

namespace mlff::gpu {
namespace {

constexpr int kTeamThreads = 32;
using SelectionTeam = Team<kTeamThreads>;

struct MovedSites {
    Site* sites;
    const double* searched;
    const double* positions;

    __device__ void add(int64_t sorted, LargestDisplacements& displacements) const {
        Site& site = sites[sorted];
        const double* now = positions + 3 * int64_t{site.atom};
        const double* then = searched + 3 * int64_t{site.atom};
        site.position = {now[0], now[1], now[2]};
        displacements.add(squared_length(edge_vector(then, now, {0, 0, 0})));
    }
};

// True if the candidates contain all pairs within the cutoff.
template <class Real>
__device__ bool is_exact(const Selection<Real>& selection) {
    return selection.displacements[kMostReductionBlocks].allow_reuse(selection.skin);
}

struct MeasuredPair {
    int32_t sender;  // original index
    std::array<int32_t, 3> shift;
    Vec3 vector;
    double squared;
};

__device__ MeasuredPair measure(const Mat3& cell, const Site& receiver, const Site& sender, uint32_t image) {
    MeasuredPair pair;
    pair.sender = sender.atom;
    pair.shift = pair_shift(receiver, sender, unpack_image(image));
    const Vec3 translation = shift_vector(cell, pair.shift[0], pair.shift[1], pair.shift[2]);
    pair.vector = edge_vector(receiver.position.data(), sender.position.data(), translation);
    pair.squared = squared_length(pair.vector);
    return pair;
}

template <class Real>
__device__ void write_edge(const Selection<Real>& selection, int64_t edge, const MeasuredPair& pair) {
    selection.sender[edge] = pair.sender;
    if (selection.shift)
        for (int k = 0; k < 3; ++k) selection.shift[3 * edge + k] = pair.shift[k];
    if (selection.vector)
        for (int k = 0; k < 3; ++k) selection.vector[3 * edge + k] = static_cast<Real>(pair.vector[k]);
    if (selection.distance) selection.distance[edge] = static_cast<Real>(std::sqrt(pair.squared));
}

// Launch: one team per sorted atom. The first pass counts the candidates within the cutoff, the second writes them from
// first[atom] on. If a search is needed there are no edges, so later kernels in the stream do no useless work.
template <bool kFill, class Real>
__global__ void __launch_bounds__(kBlockThreads) select_around(Selection<Real> selection) {
    mlff::gpu::await_predecessor();
    const bool exact = is_exact(selection);
    if (kFill && thread_index() == 0) *selection.report = {selection.first[selection.atom_count], exact ? 0 : 1};
    const SelectionTeam team;
    const int64_t receiver = team.atom();
    if (receiver >= selection.atom_count) return;
    if (!exact) {
        if (!kFill && team.rank() == 0) selection.count[selection.sites[receiver].atom] = 0;
        return;
    }
    const double cutoff_squared = selection.cutoff * selection.cutoff;
    const Site at = selection.sites[receiver];
    const int64_t first = kFill ? selection.first[at.atom] : 0;
    const int64_t end = selection.candidate_first[receiver + 1];
    int64_t index = selection.candidate_first[receiver] + team.rank();
    Candidate upcoming{};  // prefetched, while the site of the previous candidate is being loaded
    if (index < end) upcoming = selection.candidates[index];
    int32_t kept = 0;
    for (; index - team.rank() < end; index += kTeamThreads) {
        bool keep = false;
        MeasuredPair pair;
        if (index < end) {
            const Candidate candidate = upcoming;
            if (index + kTeamThreads < end) upcoming = selection.candidates[index + kTeamThreads];
            pair = measure(selection.cell, at, selection.sites[candidate.sender], candidate.image);
            keep = pair.squared < cutoff_squared;
        }
        const SelectionTeam::Kept place = team.count_kept(keep);
        if (kFill) {
            if (keep) write_edge(selection, first + kept + place.before, pair);
            if (selection.reverse && index < end) selection.edge_of_candidate[index] = keep ? kept + place.before : -1;
        }
        kept += place.total;
    }
    if (!kFill && team.rank() == 0) selection.count[at.atom] = kept;
}

// Launch: one team per sorted atom. An edge and its reverse are candidates of each other. Their vectors are exactly
// opposite, so both are within the cutoff or both are beyond. An edge without a reverse refers to itself, which is safe
// to read.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) write_reverse(Selection<Real> selection) {
    mlff::gpu::await_predecessor();
    const SelectionTeam team;
    const int64_t receiver = team.atom();
    if (receiver >= selection.atom_count || !is_exact(selection)) return;
    const int64_t first = selection.first[selection.sites[receiver].atom];
    const int64_t end = selection.candidate_first[receiver + 1];
    for (int64_t index = selection.candidate_first[receiver] + team.rank(); index < end; index += kTeamThreads) {
        const int32_t edge = selection.edge_of_candidate[index];
        if (edge < 0) continue;
        const int32_t sender = selection.candidates[index].sender;
        const int32_t reverse = selection.candidate_reverse[index];
        const int64_t other = reverse < 0 ? index : selection.candidate_first[sender] + reverse;
        const int64_t other_first = reverse < 0 ? first : selection.first[selection.sites[sender].atom];
        selection.reverse[first + edge] = other_first + selection.edge_of_candidate[other];
    }
}

}  // namespace

template <class Real>
void move_sites(const Selection<Real>& selection, const double* positions, cudaStream_t stream) {
    reduce<LargestDisplacements>(MovedSites{selection.sites, selection.searched, positions}, selection.atom_count,
                                 selection.displacements, stream);
}

template <class Real>
void select_edges(const Selection<Real>& selection, const ExclusiveScan& scan, cudaStream_t stream) {
    const int64_t blocks = SelectionTeam::blocks(selection.atom_count);
    launch("counting edges", select_around<false, Real>, blocks, kBlockThreads, stream, selection);
    scan.run(selection.count, selection.atom_count + 1, selection.first, stream);
    launch("writing edges", select_around<true, Real>, blocks, kBlockThreads, stream, selection);
    if (selection.reverse)
        launch("writing reverse edges", write_reverse<Real>, blocks, kBlockThreads, stream, selection);
}

template void move_sites(const Selection<double>&, const double*, cudaStream_t);
template void move_sites(const Selection<float>&, const double*, cudaStream_t);
template void select_edges(const Selection<double>&, const ExclusiveScan&, cudaStream_t);
template void select_edges(const Selection<float>&, const ExclusiveScan&, cudaStream_t);

}  // namespace mlff::gpu
