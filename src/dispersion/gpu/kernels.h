// SPDX-License-Identifier: MIT
// The kernels of D3. Atoms are in tiles of up to 32, with a box around each. A block takes the atoms of one tile, one
// atom for each lane, and goes over all tiles and images whose boxes come within the cutoff. Every pair is computed
// from both ends, so that an atom's sums need no other block. Where tiles are few, several blocks share those that one
// tile looks at: a part of the sums each.
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
// Sums of the pairs of an atom: energy, slope by its count, force, and virial (xx, xy, xz, yy, yz, zz).
inline constexpr int kPairSums = 11, kPairSumsWithoutVirial = 5;
// Sums of the gradients of counts: force and virial.
inline constexpr int kGradientSums = 9, kGradientSumsWithoutVirial = 3;

inline constexpr int64_t tiles_of(int64_t atoms) { return (atoms + kTileAtoms - 1) / kTileAtoms; }
// Enough blocks to fill a GPU.
inline constexpr int64_t kWantedBlocks = 1024, kMostParts = 128;
inline constexpr int64_t parts_for(int64_t tiles) {
    const int64_t parts = tiles > 0 ? (kWantedBlocks + tiles - 1) / tiles : 1;
    return parts < 1 ? 1 : parts > kMostParts ? kMostParts : parts;
}
// No number of tiles up to this one has more parts in all.
inline constexpr int64_t most_parts_of_all(int64_t tiles) { return kWantedBlocks + tiles; }

template <class Real>
struct alignas(16) Four {
    Real at[4];
};
inline constexpr int row_length(int references) { return (references + 3 + 3) / 4; }  // Four, of a row of `rows`

// The cell: its vectors, and their reciprocals. Rows that are not periodic complete them.
struct Frame {
    double vectors[3][3], reciprocal[3][3];
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
    bool wants_virial = false;
    const double* positions = nullptr;
    const int32_t* elements = nullptr;
    const int32_t* order = nullptr;               // [own atom]: neighbours stand near each other; nullptr: as they are
    const mlff::gpu::SystemCell* cell = nullptr;  // nullptr: no images
    KindTables<Real> tables;
    DampingKind damping = DampingKind::bj;
    int32_t half_exponent = 7;
    bool is_smooth = false;

    Frame* frame = nullptr;
    TileBox<Real>* boxes = nullptr;   // [tile]
    int32_t* atom_of_slot = nullptr;  // -1: none
    int32_t* kind_of_slot = nullptr;  // ascending within a tile; kind_count: none
    Four<Real>* places = nullptr;     // [slot]: position from the centre of the box, and covalent radius
    Four<Real>* rows = nullptr;       // [slot][row_length]: position and weights of references
    Real* shares = nullptr;           // [own tile][kind][2][reference][lane]: C6 for each reference of the kind
                                      // that a neighbour has, and the derivative by the own count
    Real* slopes = nullptr;           // [slot]: dE/dcount
    double* atom_counts = nullptr;    // [atom], for domains
    double* atom_slopes = nullptr;    // [atom], for domains
    Real* count_parts = nullptr;      // [own slot][part]
    Real* pair_parts = nullptr;       // [own slot][sum][part]
    Real* gradient_parts = nullptr;   // [own slot][sum][part]
    int* has_short_edge = nullptr;    // set if two atoms are at the same place
    double* energies = nullptr;       // [atom]
    double* forces = nullptr;         // [atom][3], ghosts too; nullptr: not wanted
    double* virials = nullptr;        // [atom][9], ghosts too; nullptr: not wanted

    int pair_sums() const { return wants_virial ? kPairSums : kPairSumsWithoutVirial; }
    int gradient_sums() const { return wants_virial ? kGradientSums : kGradientSumsWithoutVirial; }
};

// One launch each, in this order. With ghosts: write_counts, then the exchange of atom_counts, before weigh; and
// write_slopes for own atoms, then the exchange of atom_slopes, then read_slopes.
template <class Real>
void place(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void count_neighbors(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void write_counts(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void weigh(const Work<Real>& work, bool from_atom_counts, cudaStream_t stream);
template <class Real>
void sum_pairs(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void write_slopes(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void read_slopes(const Work<Real>& work, cudaStream_t stream);  // of ghosts
template <class Real>
void sum_gradients(const Work<Real>& work, cudaStream_t stream);
template <class Real>
void write_results(const Work<Real>& work, bool has_gradients, cudaStream_t stream);

}  // namespace mlff::dispersion::gpu
