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

// Bins of a grid in an order in which each is beside the one before: along direction 0, back and forth.
struct TurningGrid {
    CellGrid grid;

    __device__ int32_t bin_of(const double* position) const {
        const int32_t bin = grid.bin_of(position), row = bin / grid.bin_count[0];
        const int32_t along1 = row % grid.bin_count[1], along2 = row / grid.bin_count[1];
        const int32_t turned1 = along2 % 2 == 0 ? along1 : grid.bin_count[1] - 1 - along1;
        const int32_t turned_row = along2 * grid.bin_count[1] + turned1, along0 = bin - row * grid.bin_count[0];
        return turned_row * grid.bin_count[0] + (turned_row % 2 == 0 ? along0 : grid.bin_count[0] - 1 - along0);
    }
};

template <class Grid>
__global__ void count_bins(Grid grid, const double* positions, int64_t atom_count, int32_t* bin, int32_t* count) {
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

// As place_atoms(), for the indices of atoms alone.
__global__ void place_indices(int64_t atom_count, const int32_t* unsorted_bin, const int32_t* first_in_bin,
                              const int32_t* atom_of_slot, int32_t* order) {
    mlff::gpu::await_predecessor();
    const int64_t slot = thread_index();
    if (slot >= atom_count) return;
    const int32_t atom = atom_of_slot[slot], in = unsorted_bin[atom], end = first_in_bin[in + 1];
    int32_t sorted = first_in_bin[in];
    for (int32_t other = first_in_bin[in]; other < end; ++other) sorted += atom_of_slot[other] < atom ? 1 : 0;
    order[sorted] = atom;
}

// The grid of a search with other bins: cubes of about 32 atoms, cut into 32 along direction 0.
CellGrid grid_of_runs(const CellGrid& searched, int64_t atom_count) {
    constexpr double kAtomsOfRun = 32, kLeastExtent = 1;  // angstrom
    CellGrid grid = searched;
    Vec3 extent;
    for (size_t k = 0; k < 3; ++k) {
        const Vec3& v = grid.lattice.vectors[k];
        const double vector_length = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        extent[k] = std::max((grid.lattice.periodic[k] ? 1 : grid.length[k]) * vector_length, kLeastExtent);
    }
    const double side = std::cbrt(kAtomsOfRun * extent[0] * extent[1] * extent[2] / static_cast<double>(atom_count));
    for (size_t k = 0; k < 3; ++k) {
        const double wanted = std::round((k == 0 ? kAtomsOfRun : 1) * extent[k] / side);
        grid.bin_count[k] = static_cast<int32_t>(std::clamp(wanted, 1.0, k == 0 ? 4096.0 : 256.0));
        grid.bin_width[k] = (grid.lattice.periodic[k] ? 1 : std::max(grid.length[k], 1e-9)) / grid.bin_count[k];
    }
    return grid;
}

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
template <class Grid>
void SortedSites::collect_in_bins(const Grid& grid, DeviceBuffer<int32_t>& first_in_bin, int64_t bins,
                                  const SystemView& system, cudaStream_t stream) {
    constexpr const char* kPurpose = "the sorted atoms";
    const int64_t atoms = system.atom_count, blocks = blocks_for(atoms);
    unsorted_bin_.resize_discard(atoms, kPurpose);
    atom_of_slot_.resize_discard(atoms, kPurpose);
    count_.resize_discard(bins + 1, kPurpose);
    first_in_bin.resize_discard(bins + 1, kPurpose);
    check(cudaMemsetAsync(count_.data(), 0, static_cast<size_t>(bins + 1) * sizeof(int32_t), stream),
          "clearing counts");
    launch("counting atoms in bins", count_bins<Grid>, blocks, kBlockThreads, stream, grid, system.positions, atoms,
           unsorted_bin_.data(), count_.data());
    scan_.run(count_.data(), bins + 1, first_in_bin.data(), stream);
    launch("sorting atoms", collect_atoms, blocks, kBlockThreads, stream, unsorted_bin_.data(), first_in_bin.data(),
           atoms, count_.data(), atom_of_slot_.data());
}

void SortedSites::sort_into_runs(const SystemView& system, cudaStream_t stream) {
    const TurningGrid turning{grid_of_runs(grid_, system.atom_count)};
    collect_in_bins(turning, first_in_run_bin_, turning.grid.total_bins(), system, stream);
    runs_.resize_discard(system.atom_count, "the sorted atoms");
    launch("sorting atoms", place_indices, blocks_for(system.atom_count), kBlockThreads, stream, system.atom_count,
           unsorted_bin_.data(), first_in_run_bin_.data(), atom_of_slot_.data(), runs_.data());
}

void SortedSites::sort_atoms(const SystemView& system, cudaStream_t stream) {
    constexpr const char* kPurpose = "the sorted atoms";
    const int64_t atoms = system.atom_count;
    collect_in_bins(grid_, first_in_bin_, grid_.total_bins(), system, stream);
    sites_.resize_discard(atoms, kPurpose);
    bin_.resize_discard(atoms, kPurpose);
    place_.resize_discard(atoms, kPurpose);
    launch("sorting atoms", place_atoms, blocks_for(atoms), kBlockThreads, stream, grid_, system.positions, atoms,
           unsorted_bin_.data(), first_in_bin_.data(), atom_of_slot_.data(),
           PlacedAtoms{sites_.data(), bin_.data(), place_.data()});
}

}  // namespace mlff::gpu
