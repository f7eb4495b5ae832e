// SPDX-License-Identifier: MIT
#include "gpu/neighbors/edge_selection.h"

#include <algorithm>

#include "gpu/neighbors/team.cuh"
#include "gpu/runtime/cluster.h"
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
    int* cleared;  // set to 0, unless null

    __device__ void add(int64_t sorted, LargestDisplacements& displacements) const {
        if (sorted == 0 && cleared) *cleared = 0;
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

// The candidates of one atom, 32 at a time, one for each lane of its team. `Places` has sites and marks by their sorted
// index, and first edges by the index of the atom. Loads of several words are issued together.
template <class Real, class Places>
class CandidatesAround {
public:
    __device__ CandidatesAround(const Selection<Real>& selection, const Places& places, int64_t receiver,
                                const SelectionTeam& team)
        : selection_(selection),
          places_(places),
          rank_(team.rank()),
          team_(team),
          at_(places.site(static_cast<int32_t>(receiver))),
          first_(selection.candidate_first[receiver]),
          count_(static_cast<int32_t>(selection.candidate_first[receiver + 1] - first_)),
          marks_(places.marks(static_cast<int32_t>(receiver))) {}

    __device__ const Site& site() const { return at_; }

    // Marks those within the cutoff, and returns their number.
    __device__ int32_t mark() const {
        const double cutoff_squared = selection_.cutoff * selection_.cutoff;
        int32_t kept = 0;
        for (int32_t word = 0; word * kTeamThreads < count_; word += Places::kWordsAtOnce) {
            Candidate candidates[Places::kWordsAtOnce];
            load_candidates(word, candidates);
            bool keep[Places::kWordsAtOnce];
#pragma unroll
            for (int i = 0; i < Places::kWordsAtOnce; ++i)
                keep[i] =
                    has(word + i) &&
                    measure(selection_.cell, at_, places_.site(candidates[i].sender), candidates[i].image).squared <
                        cutoff_squared;
#pragma unroll
            for (int i = 0; i < Places::kWordsAtOnce; ++i) {
                const unsigned mask = team_.which(keep[i]);
                if ((word + i) * kTeamThreads < count_) places_.store_mark(marks_ + word + i, mask, rank_);
                kept += __popc(mask);
            }
        }
        return kept;
    }

    // Writes the edges of those that are marked.
    //
    // An edge and its reverse are candidates of each other. Their vectors are exactly opposite, so both are marked or
    // neither is. An edge without a reverse refers to itself, which is safe to read.
    __device__ void write() const {
        const uint32_t own = uint32_t{1} << rank_;
        int64_t edge = places_.first_edge(at_.atom);
        for (int32_t word = 0; word * kTeamThreads < count_; word += Places::kWordsAtOnce) {
            uint32_t masks[Places::kWordsAtOnce];
            Candidate candidates[Places::kWordsAtOnce];
            int32_t reverses[Places::kWordsAtOnce] = {};
#pragma unroll
            for (int i = 0; i < Places::kWordsAtOnce; ++i)
                masks[i] = (word + i) * kTeamThreads < count_ ? marks_[word + i] : 0;
            load_candidates(word, candidates);
            if (selection_.reverse)
#pragma unroll
                for (int i = 0; i < Places::kWordsAtOnce; ++i)
                    if (has(word + i)) reverses[i] = selection_.candidate_reverse[index_in(word + i)];
            int32_t marks_before[Places::kWordsAtOnce] = {};
            if (selection_.reverse)
#pragma unroll
                for (int i = 0; i < Places::kWordsAtOnce; ++i)
                    if ((masks[i] & own) && reverses[i] >= 0)
                        marks_before[i] = count_marks_before(candidates[i].sender, reverses[i]);
#pragma unroll
            for (int i = 0; i < Places::kWordsAtOnce; ++i) {
                if (masks[i] & own) {
                    const int64_t own_edge = edge + __popc(masks[i] & (own - 1));
                    const Site sender = places_.site(candidates[i].sender);
                    write_edge(selection_, own_edge, measure(selection_.cell, at_, sender, candidates[i].image));
                    if (selection_.reverse)
                        selection_.reverse[own_edge] =
                            reverses[i] < 0 ? own_edge : places_.first_edge(sender.atom) + marks_before[i];
                }
                edge += __popc(masks[i]);
            }
        }
    }

private:
    __device__ bool has(int32_t word) const { return word * kTeamThreads + rank_ < count_; }
    __device__ int64_t index_in(int32_t word) const { return first_ + word * kTeamThreads + rank_; }
    __device__ void load_candidates(int32_t word, Candidate (&candidates)[Places::kWordsAtOnce]) const {
#pragma unroll
        for (int i = 0; i < Places::kWordsAtOnce; ++i)
            candidates[i] = has(word + i) ? selection_.candidates[index_in(word + i)] : Candidate{};
    }
    __device__ int32_t count_marks_before(int32_t sorted_atom, int32_t candidate) const {
        const uint32_t* of_atom = places_.marks(sorted_atom);
        const int32_t last = candidate / kTeamThreads;
        int32_t count = __popc(of_atom[last] & ((uint32_t{1} << candidate % kTeamThreads) - 1));
#pragma unroll 4
        for (int32_t word = 0; word < last; ++word) count += __popc(of_atom[word]);
        return count;
    }

    const Selection<Real>& selection_;
    const Places& places_;
    const int rank_;
    const SelectionTeam& team_;
    const Site at_;
    const int64_t first_;
    const int32_t count_;
    uint32_t* const marks_;
};

// Sites that have been moved, in memory.
template <class Real>
struct StoredPlaces {
    static constexpr int kWordsAtOnce = 2;
    const Selection<Real>& selection;

    __device__ Site site(int32_t sorted) const { return selection.sites[sorted]; }
    __device__ uint32_t* marks(int32_t sorted) const {
        return selection.marks + first_mark(selection.candidate_first[sorted], sorted);
    }
    __device__ void store_mark(uint32_t* to, uint32_t mark, int rank) const {
        if (rank == 0) *to = mark;
    }
    __device__ int64_t first_edge(int32_t atom) const { return selection.first[atom]; }
};

// Launch of both kernels: one team per sorted atom. The first marks and counts the candidates within the cutoff, the
// second writes their edges. If a search is needed there are no edges, so later kernels in the stream do no useless
// work.
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) mark_candidates(Selection<Real> selection) {
    mlff::gpu::await_predecessor();
    const SelectionTeam team;
    const int64_t receiver = team.atom();
    if (receiver >= selection.atom_count) return;
    const StoredPlaces<Real> places = {selection};
    int32_t count = 0;
    if (is_exact(selection))
        count = CandidatesAround<Real, StoredPlaces<Real>>(selection, places, receiver, team).mark();
    if (team.rank() == 0) selection.count[selection.sites[receiver].atom] = count;
}
template <class Real>
__global__ void __launch_bounds__(kBlockThreads) write_edges(Selection<Real> selection) {
    mlff::gpu::await_predecessor();
    const bool exact = is_exact(selection);
    if (thread_index() == 0) *selection.report = {selection.first[selection.atom_count], exact ? 0 : 1};
    const SelectionTeam team;
    const int64_t receiver = team.atom();
    if (receiver >= selection.atom_count || !exact) return;
    const StoredPlaces<Real> places = {selection};
    CandidatesAround<Real, StoredPlaces<Real>>(selection, places, receiver, team).write();
}

// ---- few atoms: everything in one kernel ----

constexpr int kFewAtoms = 1024;
constexpr int kMostFewThreads = 1024, kMostFewTeams = kMostFewThreads / kTeamThreads, kMostFewBlocks = 8;
constexpr int kStagedMarks = 8192;  // words: 224 candidates for each of kFewAtoms

// All atoms in shared memory. Marks too, in every block of the cluster, unless there are too many.
struct StagedPlaces {
    static constexpr int kWordsAtOnce = 5;  // enough for most atoms
    double (*position)[3];                  // [sorted atom], like the next three
    int32_t (*wrap)[3];
    int32_t* atom;
    int32_t* first_mark_of;
    int64_t* first;  // [atom + 1]
    int32_t* count;  // [atom]
    uint32_t* all_marks;
    int block_count;
    bool are_marks_staged;

    __device__ Site site(int32_t sorted) const {
        Site site;
        for (int k = 0; k < 3; ++k) site.position[k] = position[sorted][k];
        for (int k = 0; k < 3; ++k) site.wrap[k] = wrap[sorted][k];
        site.atom = atom[sorted];
        return site;
    }
    __device__ uint32_t* marks(int32_t sorted) const { return all_marks + first_mark_of[sorted]; }
    __device__ void store_mark(uint32_t* to, uint32_t mark, int rank) const {
        if (are_marks_staged)
            store_everywhere(to, mark, rank);
        else if (rank == 0)
            *to = mark;
    }
    // In the shared memory of all blocks, one for each lane.
    __device__ void store_everywhere(uint32_t* to, uint32_t number, int rank) const {
        if (rank < block_count) store_to_peer(to, rank, number);
    }
    __device__ int64_t first_edge(int32_t of_atom) const { return first[of_atom]; }

    __device__ StagedPlaces(unsigned char* memory, int atom_count, int blocks) : block_count(blocks) {
        first = reinterpret_cast<int64_t*>(memory);
        position = reinterpret_cast<double(*)[3]>(first + atom_count + 1);
        wrap = reinterpret_cast<int32_t(*)[3]>(position + atom_count);
        atom = reinterpret_cast<int32_t*>(wrap + atom_count);
        first_mark_of = atom + atom_count;
        count = first_mark_of + atom_count;
        all_marks = reinterpret_cast<uint32_t*>(count + atom_count);
    }
    static size_t bytes(int64_t atom_count) {
        return static_cast<size_t>(atom_count + 1) * sizeof(int64_t) +
               static_cast<size_t>(atom_count) * (3 * sizeof(double) + 6 * sizeof(int32_t)) +
               kStagedMarks * sizeof(uint32_t);
    }
};

// Launch: one cluster of `block_count` blocks, each with at least one thread per atom. Teams take the sorted atoms in
// turn. All blocks stage all atoms and scan the counts, each for itself.
template <class Real>
__global__ void __launch_bounds__(kMostFewThreads)
    select_few(Selection<Real> selection, const double* positions, int* cleared, int block_count) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ int64_t sum_of_warp[kMostFewTeams];
    __shared__ LargestDisplacements moved_by_team[kMostFewTeams];
    const SelectionTeam team;
    const int thread = static_cast<int>(threadIdx.x), warp = thread / kTeamThreads, rank = rank_in_cluster(),
              team_count = static_cast<int>(blockDim.x) / kTeamThreads,
              atom_count = static_cast<int>(selection.atom_count);
    const int first_receiver = rank + block_count * warp, stride = block_count * team_count;
    StagedPlaces places(memory, atom_count, block_count);
    mlff::gpu::await_predecessor();
    if (cleared && rank == 0 && thread == 0) *cleared = 0;
    places.are_marks_staged = first_mark(selection.candidate_first[atom_count], atom_count) <= kStagedMarks;
    if (!places.are_marks_staged) places.all_marks = selection.marks;

    LargestDisplacements moved;
    if (thread < atom_count) {
        const Site site = selection.sites[thread];
        const double* now = positions + 3 * int64_t{site.atom};
        for (int k = 0; k < 3; ++k) places.position[thread][k] = now[k];
        for (int k = 0; k < 3; ++k) places.wrap[thread][k] = site.wrap[k];
        places.atom[thread] = site.atom;
        places.first_mark_of[thread] = static_cast<int32_t>(first_mark(selection.candidate_first[thread], thread));
        moved.add(squared_length(edge_vector(selection.searched + 3 * int64_t{site.atom}, now, {0, 0, 0})));
    }
    for (int distance = kTeamThreads / 2; distance > 0; distance /= 2) {
        LargestDisplacements other;
        other.largest = __shfl_xor_sync(0xffffffffu, moved.largest, distance);
        other.second = __shfl_xor_sync(0xffffffffu, moved.second, distance);
        moved.merge(other);
    }
    if (team.rank() == 0) moved_by_team[warp] = moved;
    __syncthreads();
    meet_cluster();  // all blocks run: their shared memory may be written
    for (int receiver = first_receiver; receiver < atom_count; receiver += stride) {
        const CandidatesAround<Real, StagedPlaces> around(selection, places, receiver, team);
        const int32_t count = around.mark();
        places.store_everywhere(reinterpret_cast<uint32_t*>(places.count + around.site().atom),
                                static_cast<uint32_t>(count), team.rank());
    }
    __syncthreads();
    meet_cluster();  // all counts and marks are there

    moved = moved_by_team[0];
    for (int w = 1; w < team_count; ++w) moved.merge(moved_by_team[w]);
    const bool exact = moved.allow_reuse(selection.skin);
    int64_t end = exact && thread < atom_count ? places.count[thread] : 0;
    for (int distance = 1; distance < kTeamThreads; distance *= 2) {
        const int64_t lower = __shfl_up_sync(0xffffffffu, end, distance);
        if (team.rank() >= distance) end += lower;
    }
    if (team.rank() == kTeamThreads - 1) sum_of_warp[warp] = end;
    __syncthreads();
    for (int w = 0; w < warp; ++w) end += sum_of_warp[w];
    if (thread == 0) places.first[0] = 0;
    if (thread < atom_count) places.first[thread + 1] = end;
    __syncthreads();
    if (rank == 0) {
        if (thread == 0) *selection.report = {places.first[atom_count], exact ? 0 : 1};
        if (thread == 0) selection.first[0] = 0;
        if (thread < atom_count) selection.first[thread + 1] = end;
    }
    if (!exact) return;
    for (int receiver = first_receiver; receiver < atom_count; receiver += stride)
        CandidatesAround<Real, StagedPlaces>(selection, places, receiver, team).write();
}

// False if there are too many atoms, or more than one block's share where the GPU has no clusters.
template <class Real>
bool try_select_few(const Selection<Real>& selection, const double* positions, int* cleared, cudaStream_t stream) {
    if (selection.atom_count > kFewAtoms) return false;
    const auto atom_count = static_cast<int>(selection.atom_count);
    const int block_count = std::min((atom_count + kMostFewTeams - 1) / kMostFewTeams, kMostFewBlocks),
              threads = std::min(kTeamThreads * atom_count, kMostFewThreads);
    const size_t shared_bytes = StagedPlaces::bytes(selection.atom_count);
    constexpr const char* kDoing = "selecting edges";
    if (block_count == 1) {
        launch(kDoing, select_few<Real>, {dim3(1), threads, shared_bytes}, stream, selection, positions, cleared, 1);
        return true;
    }
    if (!can_launch_clusters(kDoing, select_few<Real>)) return false;
    launch_clusters(kDoing, select_few<Real>, 1, block_count, threads, shared_bytes, stream, selection, positions,
                    cleared, block_count);
    return true;
}

}  // namespace

template <class Real>
void select_edges(const Selection<Real>& selection, const ExclusiveScan& scan, cudaStream_t stream) {
    const int64_t blocks = SelectionTeam::blocks(selection.atom_count);
    launch("marking candidates", mark_candidates<Real>, blocks, kBlockThreads, stream, selection);
    scan.run(selection.count, selection.atom_count + 1, selection.first, stream);
    launch("writing edges", write_edges<Real>, blocks, kBlockThreads, stream, selection);
}

template <class Real>
void select_edges_of_moved(const Selection<Real>& selection, const double* positions, int* cleared,
                           const ExclusiveScan& scan, cudaStream_t stream) {
    if (try_select_few(selection, positions, cleared, stream)) return;
    reduce<LargestDisplacements>(MovedSites{selection.sites, selection.searched, positions, cleared},
                                 selection.atom_count, selection.displacements, stream);
    select_edges(selection, scan, stream);
}

#define MLFF_INSTANTIATE(Real)                                                                             \
    template void select_edges(const Selection<Real>&, const ExclusiveScan&, cudaStream_t);                \
    template void select_edges_of_moved(const Selection<Real>&, const double*, int*, const ExclusiveScan&, \
                                        cudaStream_t);
MLFF_INSTANTIATE(double)
MLFF_INSTANTIATE(float)
#undef MLFF_INSTANTIATE

}  // namespace mlff::gpu
