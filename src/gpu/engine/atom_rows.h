// SPDX-License-Identifier: MIT
// Views of atoms and of their features for kernels.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace mlff::gpu {

inline constexpr int kAtomsPerTile = 64;
inline constexpr int kBlockThreads = 128;
inline constexpr int kWarps = kBlockThreads / 32;

// Atoms of one element: atoms[begin], ..., atoms[begin + count - 1].
struct Tile {
    int32_t begin = 0, count = 0, element = 0;
};
struct TilesView {
    const Tile* tiles = nullptr;
    const int32_t* atoms = nullptr;  // sorted by element
    int32_t tile_count = 0;
    int32_t atom_count = 0;

    bool operator==(const TilesView&) const = default;
};

// Features of each atom or, if `elements` is given, of each element: `size` numbers each.
template <class T>
struct RowsView {
    T* first = nullptr;
    int32_t size = 0;
    const int32_t* elements = nullptr;  // [atom]

    MLFF_HOST_DEVICE T* of(int64_t atom) const { return first + (elements ? elements[atom] : atom) * size; }
};

}  // namespace mlff::gpu
