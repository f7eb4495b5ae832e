// SPDX-License-Identifier: MIT
#include "neighbors/gpu/candidate_search.h"

#include "neighbors/gpu/launch.cuh"
#include "neighbors/neighbor_list.h"

namespace mlff::cuda {
namespace {

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

__device__ float3 image_translation(const Mat3& vectors, const std::array<int32_t, 3>& image) {
    const Vec3 shift = shift_vector(vectors, image[0], image[1], image[2]);
    return make_float3(static_cast<float>(shift[0]), static_cast<float>(shift[1]), static_cast<float>(shift[2]));
}

// The single-precision filter of the CPU's search, whose error CellGrid::filter_margin bounds.
__device__ bool is_near(const float4& receiver, const float4& sender, const float3& translation, float surely_beyond) {
    const float x = (sender.x + translation.x) - receiver.x;
    const float y = (sender.y + translation.y) - receiver.y;
    const float z = (sender.z + translation.z) - receiver.z;
    return (x * x + y * y) + z * z < surely_beyond;
}

// Launch: one team for each sorted atom, which looks at the runs of atoms in the bins around it, in the order of the
// stencil. The first pass counts, the second writes from first[receiver] on.
template <bool kFill>
__global__ void __launch_bounds__(kBlockThreads) search_around(SearchView view, int32_t* count, const int64_t* first, Candidate* found) {
    const Team team;
    const int64_t receiver = team.atom();
    if (receiver >= view.atom_count) return;
    const float4 at = view.place[receiver];
    const uint32_t home = pack_image(0, 0, 0);
    const BinRange around = bin_range(view.atoms, view.bin[receiver], view.bin[receiver]);
    int64_t kept = kFill ? first[receiver] : 0;
    for (int32_t row = 0; row < view.stencil_rows; ++row) {
        RunCursor cursor(view.atoms, around, view.stencil[row]);
        for (CandidateRun run; cursor.next(run);) {
            const auto image = unpack_image(run.image);
            const float3 translation = image_translation(view.lattice_vectors, image);
            for (int32_t begin = run.begin; begin < run.end; begin += kTeamThreads) {
                const int32_t sender = begin + team.rank();
                bool keep = sender < run.end && (run.image != home || sender != receiver) &&
                            is_near(at, view.place[sender], translation, view.surely_beyond);
                if (keep && view.half)
                    keep = is_in_half_list(view.sites[receiver].atom, view.sites[sender].atom, image);
                const Team::Kept place = team.count_kept(keep);
                if (kFill && keep) found[kept + place.before] = {sender, run.image};
                kept += place.total;
            }
        }
    }
    if (!kFill && team.rank() == 0) count[receiver] = static_cast<int32_t>(kept);
}

}  // namespace

void CandidateSearch::find(const SortedSites& sites, bool half, cudaStream_t stream) {
    const int64_t atoms = sites.atom_count();
    make_stencil(sites.grid(), stencil_);
    const auto rows = static_cast<int64_t>(stencil_.size());
    device_stencil_.resize_discard(rows, "the bins around an atom");
    check(cudaMemcpyAsync(device_stencil_.data(), stencil_.data(), stencil_.size() * sizeof(StencilRow),
                          cudaMemcpyHostToDevice, stream), "copying the stencil");
    const SearchView view = {sites.binned(), sites.sites(), sites.bin(), sites.place(), atoms,
                             sites.grid().lattice.vectors, device_stencil_.data(), static_cast<int32_t>(rows),
                             sites.grid().surely_beyond(), half};

    count_.resize_discard(atoms + 1, "counts of neighbours");
    first_.resize_discard(atoms + 1, "counts of neighbours");
    check(cudaMemsetAsync(count_.data() + atoms, 0, sizeof(int32_t), stream), "clearing a count");
    const unsigned blocks = team_blocks_for(atoms);
    search_around<false><<<blocks, kBlockThreads, 0, stream>>>(view, count_.data(), nullptr, nullptr);
    check_launch("counting neighbours");
    scan_.run(count_.data(), atoms + 1, first_.data(), stream);
    candidates_.resize_discard(total_.read(first_.data() + atoms, stream), "candidate neighbours");
    search_around<true><<<blocks, kBlockThreads, 0, stream>>>(view, nullptr, first_.data(), candidates_.data());
    check_launch("finding neighbours");
}

}  // namespace mlff::cuda
