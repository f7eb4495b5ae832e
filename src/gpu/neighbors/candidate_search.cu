// SPDX-License-Identifier: MIT
#include "gpu/neighbors/candidate_search.h"

#include "gpu/neighbors/team.cuh"
#include "gpu/runtime/cuda_check.h"
#include "neighbors/neighbor_list.h"

namespace mlff::gpu {
namespace {

// With few atoms, many threads per atom finish sooner. With many atoms, few threads per atom waste less.
constexpr int64_t kManyAtoms = 20000;
constexpr int kThreadsIfFew = 32;
constexpr int kThreadsIfMany = 8;
constexpr int kThreadsForReverse = 32;

struct SearchView {
    BinnedAtoms atoms;
    const Site* sites;
    const int32_t* bin;
    const float4* place;
    int64_t atom_count;
    Mat3 lattice_vectors;
    const StencilRow* stencil;
    int32_t stencil_rows;
    float surely_beyond;  // squared
    bool half;
};

__device__ float3 image_translation(const Mat3& vectors, uint32_t image) {
    if (image == pack_image(0, 0, 0)) return make_float3(0, 0, 0);
    const auto number = unpack_image(image);
    const Vec3 shift = shift_vector(vectors, number[0], number[1], number[2]);
    return make_float3(static_cast<float>(shift[0]), static_cast<float>(shift[1]), static_cast<float>(shift[2]));
}

// The single-precision filter of the CPU search. CellGrid::filter_margin bounds its error.
__device__ bool is_near(const float4& receiver, const float4& sender, const float3& translation, float surely_beyond) {
    const float x = (sender.x + translation.x) - receiver.x;
    const float y = (sender.y + translation.y) - receiver.y;
    const float z = (sender.z + translation.z) - receiver.z;
    return (x * x + y * y) + z * z < surely_beyond;
}

__device__ bool is_candidate(const SearchView& view, int64_t receiver, const float4& at, int32_t sender, uint32_t image,
                             const float3& translation) {
    if (sender == receiver && image == pack_image(0, 0, 0)) return false;
    if (!is_near(at, view.place[sender], translation, view.surely_beyond)) return false;
    return !view.half || is_in_half_list(view.sites[receiver].atom, view.sites[sender].atom, unpack_image(image));
}

// Launch: one team per sorted atom. A team goes through the runs of atoms in the surrounding bins, in the order of the
// stencil. The first pass counts, the second writes from first[receiver] on.
template <int kTeamThreads, bool kFill>
__global__ void __launch_bounds__(kBlockThreads)
    search_around(SearchView view, int32_t* count, const int64_t* first, Candidate* found) {
    mlff::gpu::await_predecessor();
    const Team<kTeamThreads> team;
    const int64_t receiver = team.atom();
    if (receiver >= view.atom_count) return;
    const float4 at = view.place[receiver];
    const BinRange around = bin_range(view.atoms, view.bin[receiver], view.bin[receiver]);
    int64_t kept = kFill ? first[receiver] : 0;
    for (int32_t row = 0; row < view.stencil_rows; ++row) {
        RunCursor cursor(view.atoms, around, view.stencil[row]);
        for (CandidateRun run; cursor.next(run);) {
            const float3 translation = image_translation(view.lattice_vectors, run.image);
            for (int32_t begin = run.begin; begin < run.end; begin += kTeamThreads) {
                const int32_t sender = begin + team.rank();
                const bool keep = sender < run.end && is_candidate(view, receiver, at, sender, run.image, translation);
                const typename Team<kTeamThreads>::Kept place = team.count_kept(keep);
                if (kFill && keep) found[kept + place.before] = {sender, run.image};
                kept += place.total;
            }
        }
    }
    if (!kFill && team.rank() == 0) count[receiver] = static_cast<int32_t>(kept);
}

template <bool kFill>
void launch_search(const SearchView& view, int32_t* count, const int64_t* first, Candidate* found,
                   cudaStream_t stream) {
    const bool many = view.atom_count >= kManyAtoms;
    launch(kFill ? "finding neighbours" : "counting neighbours",
           many ? search_around<kThreadsIfMany, kFill> : search_around<kThreadsIfFew, kFill>,
           many ? Team<kThreadsIfMany>::blocks(view.atom_count) : Team<kThreadsIfFew>::blocks(view.atom_count),
           kBlockThreads, stream, view, count, first, found);
}

// The position of a candidate in its receiver's list: ordered by row of bins, including images; within a row by the
// image along direction 0, then by sorted atom.
struct CandidateOrder {
    int64_t row;
    int64_t place;
    __device__ bool operator<(const CandidateOrder& other) const {
        return row != other.row ? row < other.row : place < other.place;
    }
};

__device__ CandidateOrder order_of(const SearchView& view, const Candidate& candidate) {
    const BinRange at = bin_range(view.atoms, view.bin[candidate.sender], view.bin[candidate.sender]);
    const auto image = unpack_image(candidate.image);
    const int64_t row1 = at.bin1 + int64_t{image[1]} * view.atoms.bin_count[1];
    const int64_t row2 = at.bin2 + int64_t{image[2]} * view.atoms.bin_count[2];
    return {(row2 << 32) + row1, (int64_t{image[0]} << 32) + candidate.sender};
}

// Launch: one team per sorted atom. Each thread finds the reverse of one candidate at a time.
__global__ void __launch_bounds__(kBlockThreads)
    find_reverse(SearchView view, const int64_t* first, const Candidate* candidates, int32_t* reverse) {
    mlff::gpu::await_predecessor();
    const Team<kThreadsForReverse> team;
    const int64_t receiver = team.atom();
    if (receiver >= view.atom_count) return;
    for (int64_t index = first[receiver] + team.rank(); index < first[receiver + 1]; index += kThreadsForReverse) {
        const Candidate candidate = candidates[index];
        const auto image = unpack_image(candidate.image);
        const Candidate opposite = {static_cast<int32_t>(receiver), pack_image(-image[0], -image[1], -image[2])};
        const CandidateOrder wanted = order_of(view, opposite);
        const int64_t begin = first[candidate.sender];
        const int64_t end = first[candidate.sender + 1];
        int64_t low = begin;
        for (int64_t high = end; low < high;) {
            const int64_t middle = low + (high - low) / 2;
            if (order_of(view, candidates[middle]) < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        const bool found =
            low < end && candidates[low].sender == opposite.sender && candidates[low].image == opposite.image;
        reverse[index] = found ? static_cast<int32_t>(low - begin) : -1;
    }
}

}  // namespace

void CandidateSearch::find(const SortedSites& sites, bool half, bool want_reverse,
                           const std::function<void(int64_t)>& admit, cudaStream_t stream) {
    const int64_t atoms = sites.atom_count();
    make_stencil(sites.grid(), stencil_);
    const auto rows = static_cast<int64_t>(stencil_.size());
    device_stencil_.resize_discard(rows, "the bins around an atom");
    check(cudaMemcpyAsync(device_stencil_.data(), stencil_.data(), stencil_.size() * sizeof(StencilRow),
                          cudaMemcpyHostToDevice, stream),
          "copying the stencil");
    const SearchView view = {sites.binned(),
                             sites.sites(),
                             sites.bin(),
                             sites.place(),
                             atoms,
                             sites.grid().lattice.vectors,
                             device_stencil_.data(),
                             static_cast<int32_t>(rows),
                             sites.grid().surely_beyond(),
                             half};

    count_.resize_discard(atoms + 1, "counts of neighbours");
    first_.resize_discard(atoms + 1, "counts of neighbours");
    check(cudaMemsetAsync(count_.data() + atoms, 0, sizeof(int32_t), stream), "clearing a count");
    launch_search<false>(view, count_.data(), nullptr, nullptr, stream);
    scan_.run(count_.data(), atoms + 1, first_.data(), stream);
    const int64_t total = total_.read(first_.data() + atoms, stream);
    admit(total);
    for_each_array(want_reverse,
                   [&](auto& array, int64_t width) { array.resize_discard(width * total, "candidate neighbours"); });
    launch_search<true>(view, nullptr, first_.data(), candidates_.data(), stream);
    if (!want_reverse) return;
    launch("finding reverse edges", find_reverse, Team<kThreadsForReverse>::blocks(atoms), kBlockThreads, stream, view,
           first_.data(), candidates_.data(), reverse_.data());
}

}  // namespace mlff::gpu
