// SPDX-License-Identifier: MIT
// The kernels of D3. Atoms are in tiles of up to 32, with a box around each. A block takes one tile and goes over the
// tiles and images whose boxes come within the cutoff. One of two tiles looks at the other, and computes their pairs
// for the atoms of both; a tile looks at its own images too, for itself alone, and at tiles of ghosts. Several blocks
// share those that one tile looks at: a part each.
//
// Sums of atoms are whole numbers of 2^-48, which blocks add in any order: bits repeat.
//
// The passes of a step: place atoms; count neighbours; weigh references; sum over pairs, which gives the slopes of the
// energy by the counts of neighbours; sum their gradients; write results. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "dispersion/functions/damping.h"
#include "dispersion/functions/references.h"
#include "dispersion/tables/functionals.h"
#include "gpu/engine/system_cells.h"

namespace mlff::dispersion::gpu {

inline constexpr int kTileAtoms = 32;
// Of elements: there are kernels for these numbers and for kMaxReferences.
inline constexpr int kFewReferences = 3, kUsualReferences = 5;
// The sums of an atom. Virials are xx, xy, xz, yy, yz, zz.
enum Sum { kCountSum, kEnergySum, kSlopeSum, kForceSum, kVirialSum = kForceSum + 3, kSumCount = kVirialSum + 6 };
using Fixed = unsigned long long;  // a signed number of 2^-48, in eV and angstrom; additions wrap

inline constexpr int64_t tiles_of(int64_t atoms) { return (atoms + kTileAtoms - 1) / kTileAtoms; }
// Enough blocks to fill a GPU several times.
inline constexpr int64_t kWantedBlocks = 2048, kMostParts = 256;
inline constexpr int64_t parts_for(int64_t tiles) {
    const int64_t parts = tiles > 0 ? (kWantedBlocks + tiles - 1) / tiles : 1;
    return parts > kMostParts ? kMostParts : parts;
}

template <class Real>
struct alignas(16) Four {
    Real at[4];
};
// Four, of a row of `rows` and of `shares`.
inline constexpr int row_length(int references) { return (3 + 2 * references + 3) / 4; }
inline constexpr int share_length(int references) { return (2 * references + 3) / 4; }

// The cell: its vectors, and their reciprocals. Rows that are not periodic complete them.
struct Frame {
    double vectors[3][3], reciprocal[3][3];
    double reciprocal_length[3];
    int periodic[3];
};

template <class Real>
struct TileBox {
    double centre[3];  // angstrom
    Real half[3];      // half its edges
    int32_t count;     // atoms
};

// Kinds number the elements that are present.
template <class Real>
struct KindTables {
    int32_t kind_count = 0;
    const int32_t* kind_of_element = nullptr;
    const int32_t* reference_count = nullptr;  // [kind]
    const Real* reference_counts = nullptr;    // [kind][kMaxReferences]
    const Real* c6 = nullptr;                  // [kind][kind][kMaxReferences][kMaxReferences]
    const Real* covalent_radius = nullptr;     // [kind]
    const PairForm<Real>* forms = nullptr;     // [kind][kind]
};

// Own atoms have the first tiles, ghosts those after them. A slot is a place in a tile.
template <class Real>
struct Work {
    int32_t owned_count = 0, ghost_count = 0;  // atoms
    int32_t own_tile_count = 0, tile_count = 0, part_count = 1;
    int32_t reference_count = kUsualReferences;  // the most of an element, rounded up to one of three numbers
    bool has_atom_virials = false;  // if not, virials of atoms are right in sum only; needed where there are ghosts
    const double* positions = nullptr;
    const int32_t* elements = nullptr;
    const int32_t* order = nullptr;               // [own atom]: neighbours stand near each other; nullptr: as they are
    const mlff::gpu::SystemCell* cell = nullptr;  // nullptr: no images
    KindTables<Real> tables;
    DampingKind damping = DampingKind::bj;
    Real six = 1;  // of all forms of pairs
    int32_t half_exponent = 7;
    bool is_smooth = false;

    Frame* frame = nullptr;
    TileBox<Real>* boxes = nullptr;   // [tile]
    int32_t* atom_of_slot = nullptr;  // -1: none
    int32_t* kind_of_slot = nullptr;  // ascending within a tile; kind_count: none
    Four<Real>* places = nullptr;     // [slot]: position from the centre of the box, and covalent radius
    Four<Real>* rows = nullptr;       // [slot][row_length]: position, weights of references, and their slopes
    Four<Real>* shares = nullptr;     // [own slot][kind][share_length]: C6 for each reference of the kind that a
                                      // neighbour has, and their derivatives by the own count
    Fixed* sums = nullptr;            // [Sum][slot]; of ghosts only kCountSum and kSlopeSum are used
    Fixed* tile_virials = nullptr;    // [own tile][9]: forces between tiles times their offsets
    int* has_short_edge = nullptr;    // set if two atoms are at the same place, or so near that a sum does not fit
    double* energies = nullptr;       // [atom]
    double* forces = nullptr;         // [atom][3], ghosts too; nullptr: not wanted
    double* virials = nullptr;        // [atom][9], ghosts too; nullptr: not wanted

    __host__ __device__ int64_t slot_count() const { return int64_t{tile_count} * kTileAtoms; }
};

// One launch each, in this order. With ghosts: write_sums of kCountSum, then the exchange of these numbers, then
// read_sums of ghosts, before weigh; and the same of kSlopeSum before sum_gradients.
template <class Real>
void place(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void count_neighbors(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void weigh(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void sum_pairs(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void sum_gradients(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void write_results(const Work<Real>& work, cudaStream_t stream);

template <class Real>
void write_sums(const Work<Real>& work, Sum which, double* of_atoms, cudaStream_t stream);  // of own atoms
template <class Real>
void read_sums(const Work<Real>& work, Sum which, const double* of_atoms, cudaStream_t stream);  // of ghosts

}  // namespace mlff::dispersion::gpu
