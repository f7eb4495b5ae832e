// SPDX-License-Identifier: MIT
#include "equivariant/cpu/atom_tiles.h"

#include <algorithm>

namespace mlff::equivariant {

void AtomTiles::sort_atoms(const EdgeModel& model, std::span<const SystemView> systems, size_t owned_count,
                           EdgeState& edges) {
    edges.elements.clear();
    elements_present_.clear();
    for (const SystemView& system : systems)
        for (int64_t atom = 0; atom < system.atom_count; ++atom)
            edges.elements.push_back(model.element_of(system.atomic_numbers[atom]));
    first_of_element_.assign(static_cast<size_t>(model.element_count()) + 1, 0);
    for (int element : edges.elements) ++first_of_element_[static_cast<size_t>(element) + 1];
    slot_of_element_.assign(static_cast<size_t>(model.element_count()), 0);
    for (size_t z = 1; z < first_of_element_.size(); ++z) {
        if (first_of_element_[z] == 0) continue;
        slot_of_element_[z - 1] = static_cast<int>(elements_present_.size());
        elements_present_.push_back(static_cast<int>(z) - 1);
    }
    for (size_t ghost = owned_count; ghost < edges.elements.size(); ++ghost)
        --first_of_element_[static_cast<size_t>(edges.elements[ghost]) + 1];
    for (size_t z = 1; z < first_of_element_.size(); ++z) first_of_element_[z] += first_of_element_[z - 1];
    const int64_t tile_size = std::clamp<int64_t>(static_cast<int64_t>(owned_count) / 8, 1, kAtomsPerTile);
    tiles_.clear();
    size_t group_count = 0;
    for (int element : elements_present_) {
        const int64_t end = first_of_element_[static_cast<size_t>(element) + 1];
        for (int64_t at = first_of_element_[static_cast<size_t>(element)]; at < end; at += tile_size) {
            tiles_.push_back({at, std::min(at + tile_size, end), element, group_count});
            group_count += static_cast<size_t>(tiles_.back().group_count());
        }
    }
    order_.resize(owned_count);
    for (size_t atom = 0; atom < owned_count; ++atom)
        order_[static_cast<size_t>(first_of_element_[static_cast<size_t>(edges.elements[atom])]++)] =
            static_cast<int64_t>(atom);
}

void AtomTiles::start_edges(EdgeState& edges) {
    const auto edge_count = static_cast<size_t>(edges.edges->edge_count);
    edges.order.resize(edge_count);
    edges.grouped.resize(edge_count);
    first_grouped_.assign(1, 0);
    for (const AtomTile& tile : tiles_)
        for (int group = 0; group < tile.group_count(); ++group) {
            int64_t count = 0;
            for (int member = 0; member < tile.member_count(group); ++member) {
                const int64_t atom = atom_at(tile.begin + group * kAtomsPerGroup + member);
                count += edges.edges->first[atom + 1] - edges.edges->first[atom];
            }
            first_grouped_.push_back(first_grouped_.back() + count);
        }
}

void AtomTiles::sort_edges(const AtomTile& tile, double cutoff, bool by_atom, EdgeState& edges,
                           std::vector<int64_t>& work) const {
    constexpr int kLengths = 128;
    const double lengths_per_angstrom = kLengths / cutoff;
    const auto element_slot = [&](int64_t edge) {
        return static_cast<size_t>(slot_of_element_[static_cast<size_t>(edges.sender_element(edge))]);
    };
    const auto slot_and_length = [&](int64_t edge) {
        return element_slot(edge) * kLengths +
               static_cast<size_t>(
                   std::min(static_cast<int>(edges.edges->distance[edge] * lengths_per_angstrom), kLengths - 1));
    };
    // A counting sort: counts of each kind of edge, then the place where each kind begins.
    const auto sort = [&](int64_t first_atom, int atom_count, int64_t first_place, size_t kind_count,
                          const auto& kind_of, const auto& put) {
        work.assign(kind_count + 1, 0);
        work[0] = first_place;
        const auto visit = [&](const auto& action) {
            for (int member = 0; member < atom_count; ++member)
                for (int64_t edge = edges.edges->first[atom_at(first_atom + member)];
                     edge < edges.edges->first[atom_at(first_atom + member) + 1]; ++edge)
                    action(edge, member);
        };
        visit([&](int64_t edge, int) { ++work[kind_of(edge) + 1]; });
        for (size_t i = 1; i < work.size(); ++i) work[i] += work[i - 1];
        visit([&](int64_t edge, int member) { put(static_cast<size_t>(work[kind_of(edge)]++), edge, member); });
    };
    if (by_atom)
        for (int64_t place = tile.begin; place < tile.end; ++place)
            sort(place, 1, edges.edges->first[atom_at(place)], elements_present_.size(), element_slot,
                 [&](size_t to, int64_t edge, int) { edges.order[to] = edge; });
    for (int group = 0; group < tile.group_count(); ++group)
        sort(tile.begin + group * kAtomsPerGroup, tile.member_count(group),
             first_grouped_[tile.first_group + static_cast<size_t>(group)], elements_present_.size() * kLengths,
             slot_and_length, [&](size_t to, int64_t edge, int member) {
                 edges.grouped[to] = {edge, member};
             });
}

EdgeGroup AtomTiles::group(const AtomTile& tile, int number, const EdgeState& edges) const {
    const size_t group = tile.first_group + static_cast<size_t>(number);
    const GroupedEdge* grouped = edges.grouped.data();
    return {{grouped + first_grouped_[group], grouped + first_grouped_[group + 1]},
            atoms(tile) + number * kAtomsPerGroup,
            tile.element};
}

double AtomTiles::edge_count(const AtomTile& tile, const EdgeState& edges) const {
    int64_t count = 0;
    for (int64_t place = tile.begin; place < tile.end; ++place)
        count += edges.edges->first[atom_at(place) + 1] - edges.edges->first[atom_at(place)];
    return static_cast<double>(count);
}

}  // namespace mlff::equivariant
