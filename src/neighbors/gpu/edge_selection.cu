// SPDX-License-Identifier: MIT
#include "neighbors/gpu/edge_selection.h"

#include "neighbors/gpu/launch.cuh"
#include "neighbors/gpu/reduction.cuh"
#include "neighbors/neighbor_list.h"
#include "neighbors/reverse_edge.h"

namespace mlff::cuda {
namespace {

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

// Launch: one team for each sorted atom. The first pass counts the candidates within the cutoff, the second writes them
// from first[receiver] on.
template <bool kFill, class Real>
__global__ void __launch_bounds__(kBlockThreads) select_around(Selection<Real> selection) {
    const Team team;
    const int64_t receiver = team.atom();
    if (receiver >= selection.atom_count) return;
    const double cutoff_squared = selection.cutoff * selection.cutoff;
    const Site at = selection.sites[receiver];
    const int64_t end = selection.candidate_first[receiver + 1];
    int64_t kept = kFill ? selection.first[at.atom] : 0;
    for (int64_t begin = selection.candidate_first[receiver]; begin < end; begin += kTeamThreads) {
        const int64_t index = begin + team.rank();
        bool keep = false;
        int32_t sender = 0;
        std::array<int32_t, 3> shift{};
        Vec3 vector{};
        double squared = 0;
        if (index < end) {
            const Candidate candidate = selection.candidates[index];
            const Site from = selection.sites[candidate.sender];
            sender = from.atom;
            shift = pair_shift(at, from, unpack_image(candidate.image));
            const Vec3 translation = shift_vector(selection.cell, shift[0], shift[1], shift[2]);
            vector = edge_vector(at.position.data(), from.position.data(), translation);
            squared = squared_length(vector);
            keep = squared < cutoff_squared;
        }
        const Team::Kept place = team.count_kept(keep);
        if (kFill && keep) {
            const int64_t edge = kept + place.before;
            selection.sender[edge] = sender;
            if (selection.shift)
                for (int k = 0; k < 3; ++k) selection.shift[3 * edge + k] = shift[k];
            if (selection.vector)
                for (int k = 0; k < 3; ++k) selection.vector[3 * edge + k] = static_cast<Real>(vector[k]);
            if (selection.distance) selection.distance[edge] = static_cast<Real>(std::sqrt(squared));
        }
        kept += place.total;
    }
    if (!kFill && team.rank() == 0) selection.count[at.atom] = static_cast<int32_t>(kept);
}

template <class Real>
__global__ void write_report(Selection<Real> selection) {
    const bool exact = selection.displacements[kMostReductionBlocks].allow_reuse(selection.skin);
    *selection.report = {selection.first[selection.atom_count], exact ? 0 : 1};
}

// Launch: one team for each atom; each thread follows one of its edges.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) find_reverse(Selection<Real> selection) {
    const Team team;
    const int64_t receiver = team.atom();
    if (receiver >= selection.atom_count) return;
    const EdgeLists lists = {selection.first, selection.sender, selection.shift};
    const int64_t end = selection.first[receiver + 1];
    for (int64_t edge = selection.first[receiver] + team.rank(); edge < end; edge += kTeamThreads)
        selection.reverse[edge] = find_reverse_edge(lists, receiver, edge);
}

}  // namespace

template <class Real>
void move_sites(const Selection<Real>& selection, const double* positions, cudaStream_t stream) {
    reduce<LargestDisplacements>(MovedSites{selection.sites, selection.searched, positions}, selection.atom_count,
                                 selection.displacements, stream);
}

template <class Real>
void select_edges(const Selection<Real>& selection, ExclusiveScan& scan, cudaStream_t stream) {
    const unsigned blocks = team_blocks_for(selection.atom_count);
    select_around<false><<<blocks, kBlockThreads, 0, stream>>>(selection);
    check_launch("counting edges");
    scan.run(selection.count, selection.atom_count + 1, selection.first, stream);
    select_around<true><<<blocks, kBlockThreads, 0, stream>>>(selection);
    write_report<<<1, 1, 0, stream>>>(selection);
    if (selection.reverse) find_reverse<<<blocks, kBlockThreads, 0, stream>>>(selection);
    check_launch("writing edges");
}

template void move_sites(const Selection<double>&, const double*, cudaStream_t);
template void move_sites(const Selection<float>&, const double*, cudaStream_t);
template void select_edges(const Selection<double>&, ExclusiveScan&, cudaStream_t);
template void select_edges(const Selection<float>&, ExclusiveScan&, cudaStream_t);

}  // namespace mlff::cuda
