// SPDX-License-Identifier: MIT
// Atoms in tiles of one element, and their edges in an order that is good for caches. The order depends on the system
// only, so that results do not depend on the number of threads.
#pragma once

#include <span>
#include <vector>

#include "core/system_view.h"
#include "equivariant/cpu/edge_state.h"
#include "equivariant/cpu/messages.h"

namespace mlff::equivariant {

// With large tiles more atoms share what is loaded, with small tiles there is work for all threads.
inline constexpr int kAtomsPerTile = 8;              // at most
inline constexpr int kAtomsPerGroup = kMostMembers;  // atoms of a tile whose edges are sorted and processed together

// Atoms of one element, at places `begin` to `end` of the order of atoms.
struct AtomTile {
    int64_t begin, end;
    int element;
    size_t first_group;

    int count() const { return static_cast<int>(end - begin); }
    int group_count() const { return (count() + kAtomsPerGroup - 1) / kAtomsPerGroup; }
    int member_count(int group) const { return std::min(kAtomsPerGroup, count() - group * kAtomsPerGroup); }
};

class AtomTiles {
public:
    // Fills edges.elements. Atoms from `owned_count` on are ghosts, which are in no tile.
    void sort_atoms(const EdgeModel& model, std::span<const SystemView> systems, size_t owned_count, EdgeState& edges);
    // Call it before sort_edges(), from one thread. Makes room in `edges`.
    void start_edges(EdgeState& edges);
    // Sorts the edges of a tile by the element at the other end, since the radial functions of an element are in one
    // table: those of each atom (`by_atom`), and those of each group. Edges of a group are then sorted by length, so
    // that an edge reads nearly the rows of the table that the edge before it has brought into the first-level cache.
    // Lengths are only sorted into bins; that is enough for the cache. `work` is the thread's.
    void sort_edges(const AtomTile& tile, double cutoff, bool by_atom, EdgeState& edges,
                    std::vector<int64_t>& work) const;

    const std::vector<AtomTile>& tiles() const { return tiles_; }
    const std::vector<int>& elements_present() const { return elements_present_; }  // ghosts' too
    int64_t atom_at(int64_t place) const { return order_[static_cast<size_t>(place)]; }
    const int64_t* atoms(const AtomTile& tile) const { return order_.data() + tile.begin; }
    EdgeGroup group(const AtomTile& tile, int number, const EdgeState& edges) const;
    double edge_count(const AtomTile& tile, const EdgeState& edges) const;

private:
    std::vector<int> elements_present_;
    std::vector<int64_t> first_of_element_;
    std::vector<int> slot_of_element_;  // [element]: index in elements_present_
    std::vector<int64_t> order_;        // atoms sorted by element
    std::vector<AtomTile> tiles_;
    std::vector<int64_t> first_grouped_;  // [group, over all tiles]: its first edge in EdgeState::grouped
};

}  // namespace mlff::equivariant
