// SPDX-License-Identifier: MIT
#include "gpu/neighbors/sorted_sites.h"

#include "gpu/neighbors/team.cuh"
#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

struct SurveySource {
    Lattice lattice;
    const double* positions;
    __device__ void add(int64_t atom, AtomSurvey& survey) const { survey.add(lattice, positions + 3 * atom, atom); }
};

__global__ void count_bins(CellGrid grid, const double* positions, int64_t atom_count, int32_t* bin, int32_t* count) {
    mlff::gpu::await_predecessor();
    const int64_t atom = thread_index();
    if (atom >= atom_count) return;
    bin[atom] = grid.bin_of(positions + 3 * atom);
    atomicAdd(count + bin[atom], 1);
}

// Counts `left` down to zero. The order within a bin is arbitrary here.
__global__ void collect_atoms(const int32_t* bin, const int32_t* first_in_bin, int64_t atom_count, int32_t* left,
                              int32_t* atom_of_slot) {
    mlff::gpu::await_predecessor();
    const int64_t atom = thread_index();
    if (atom >= atom_count) return;
    const int32_t in = bin[atom];
    atom_of_slot[first_in_bin[in] + atomicSub(left + in, 1) - 1] = static_cast<int32_t>(atom);
}

struct PlacedAtoms {
    Site* sites;
    int32_t* bin;
    float4* place;
};

// The position of an atom within its bin is the number of atoms there with a lower index. The cost per bin is quadratic
// in its atoms, like that of the pair search.
__global__ void place_atoms(CellGrid grid, const double* positions, int64_t atom_count, const int32_t* unsorted_bin,
                            const int32_t* first_in_bin, const int32_t* atom_of_slot, PlacedAtoms placed) {
    mlff::gpu::await_predecessor();
    const int64_t slot = thread_index();
    if (slot >= atom_count) return;
    const int32_t atom = atom_of_slot[slot];
    const int32_t in = unsorted_bin[atom];
    const int32_t end = first_in_bin[in + 1];
    int32_t sorted = first_in_bin[in];
    for (int32_t other = first_in_bin[in]; other < end; ++other) sorted += atom_of_slot[other] < atom ? 1 : 0;
    const double* position = positions + 3 * int64_t{atom};
    const WrappedAtom wrapped = grid.wrap_atom(position);
    placed.sites[sorted] = {{position[0], position[1], position[2]}, wrapped.wrap, atom};
    placed.bin[sorted] = in;
    placed.place[sorted] = make_float4(wrapped.place[0], wrapped.place[1], wrapped.place[2], 0);
}

}  // namespace

SortedSites::SortedSites() { surveys_.resize_discard(kMostReductionBlocks + 1, "neighbour lists"); }

void SortedSites::build(const SystemView& system, double search_reach, bool is_one_bin, cudaStream_t stream) {
    const Lattice lattice = make_lattice(system);
    const AtomSurvey survey = survey_atoms(system, lattice, stream);
    grid_ = choose_grid(lattice, survey, system.atom_count, search_reach, is_one_bin);
    sort_atoms(system, stream);
}

AtomSurvey SortedSites::survey_atoms(const SystemView& system, const Lattice& lattice, cudaStream_t stream) {
    reduce<AtomSurvey>(SurveySource{lattice, system.positions}, system.atom_count, surveys_.data(), stream);
    const AtomSurvey survey = survey_.read(surveys_.data() + kMostReductionBlocks, stream);
    if (survey.refused < system.atom_count) {
        Vec3 position;
        check(
            cudaMemcpy(position.data(), system.positions + 3 * survey.refused, sizeof position, cudaMemcpyDeviceToHost),
            "copying a position");
        refuse_atom(survey.refused, position.data());
    }
    return survey;
}

// A counting sort.
void SortedSites::sort_atoms(const SystemView& system, cudaStream_t stream) {
    constexpr const char* kPurpose = "the sorted atoms";
    const int64_t atoms = system.atom_count;
    const int64_t bins = grid_.total_bins();
    unsorted_bin_.resize_discard(atoms, kPurpose);
    atom_of_slot_.resize_discard(atoms, kPurpose);
    count_.resize_discard(bins + 1, kPurpose);
    first_in_bin_.resize_discard(bins + 1, kPurpose);
    sites_.resize_discard(atoms, kPurpose);
    bin_.resize_discard(atoms, kPurpose);
    place_.resize_discard(atoms, kPurpose);

    check(cudaMemsetAsync(count_.data(), 0, static_cast<size_t>(bins + 1) * sizeof(int32_t), stream),
          "clearing counts");
    const int64_t blocks = blocks_for(atoms);
    launch("counting atoms in bins", count_bins, blocks, kBlockThreads, stream, grid_, system.positions, atoms,
           unsorted_bin_.data(), count_.data());
    scan_.run(count_.data(), bins + 1, first_in_bin_.data(), stream);
    launch("sorting atoms", collect_atoms, blocks, kBlockThreads, stream, unsorted_bin_.data(), first_in_bin_.data(),
           atoms, count_.data(), atom_of_slot_.data());
    launch("sorting atoms", place_atoms, blocks, kBlockThreads, stream, grid_, system.positions, atoms,
           unsorted_bin_.data(), first_in_bin_.data(), atom_of_slot_.data(),
           PlacedAtoms{sites_.data(), bin_.data(), place_.data()});
}

}  // namespace mlff::gpu
