// SPDX-License-Identifier: MIT
#include "gpu/engine/atom_set.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace mlff::gpu {
namespace {

constexpr const char* kPurpose = "the atoms";

template <class T>
void upload(DeviceBuffer<T>& buffer, const std::vector<T>& numbers, cudaStream_t stream) {
    buffer.upload(numbers.data(), static_cast<int64_t>(numbers.size()), kPurpose, stream);
}

int32_t element_of(std::span<const int> atomic_numbers, int32_t number) {
    const auto found = std::find(atomic_numbers.begin(), atomic_numbers.end(), number);
    if (found == atomic_numbers.end()) fail(Status::internal, "an atom of an element that was not checked: ", number);
    return static_cast<int32_t>(found - atomic_numbers.begin());
}

// Appends the atoms begin, ..., end - 1, sorted by element, to `order`, and their tiles to `tiles`. Tiles count from
// the first of these atoms.
void append_tiles(const std::vector<int32_t>& elements, int32_t begin, int32_t end, int element_count,
                  std::vector<int32_t>& order, std::vector<Tile>& tiles) {
    std::vector<int32_t> next(static_cast<size_t>(element_count), 0);  // in `order`, for each element
    for (int32_t atom = begin; atom < end; ++atom) ++next[static_cast<size_t>(elements[static_cast<size_t>(atom)])];
    int32_t first = 0;
    for (int32_t z = 0; z < element_count; ++z) {
        const int32_t stop = first + std::exchange(next[static_cast<size_t>(z)], first);
        for (int32_t at = first; at < stop; at += kAtomsPerTile)
            tiles.push_back({at, std::min(kAtomsPerTile, stop - at), z});
        first = stop;
    }
    const size_t before = order.size();
    order.resize(before + static_cast<size_t>(first));
    for (int32_t atom = begin; atom < end; ++atom)
        order[before + static_cast<size_t>(next[static_cast<size_t>(elements[static_cast<size_t>(atom)])]++)] = atom;
}

}  // namespace

bool AtomSet::holds(std::span<const SystemView> systems, int64_t owned_count) const {
    if (!is_set_ || owned_count != owned_count_ || systems.size() != atom_counts_.size()) return false;
    const int32_t* own = numbers_.data();
    for (size_t s = 0; s < systems.size(); ++s) {
        if (systems[s].atom_count != atom_counts_[s] ||
            !std::equal(own, own + atom_counts_[s], systems[s].atomic_numbers))
            return false;
        own += atom_counts_[s];
    }
    return true;
}

void AtomSet::list_buffers(BufferList& list, int64_t atom_count, int64_t system_count, int element_count) {
    list.add(elements_, atom_count, kPurpose);
    list.add(order_, atom_count, kPurpose);
    // For each element, the last tile of own atoms and the last tile of ghosts may not be full.
    list.add(tiles_, atom_count / kAtomsPerTile + 2 * element_count, kPurpose);
    list.add(chunks_, atom_count / kAtomsPerChunk + system_count, kPurpose);
    list.add(first_chunk_, system_count + 1, kPurpose);
}

void AtomSet::set(std::span<const SystemView> systems, int64_t owned_count, std::span<const int> atomic_numbers,
                  cudaStream_t stream) {
    is_set_ = false;
    owned_count_ = owned_count;
    numbers_.clear();
    atom_counts_.clear();
    for (const SystemView& system : systems) {
        numbers_.insert(numbers_.end(), system.atomic_numbers, system.atomic_numbers + system.atom_count);
        atom_counts_.push_back(system.atom_count);
    }
    std::vector<int32_t> elements;
    elements.reserve(numbers_.size());
    for (int32_t number : numbers_) elements.push_back(element_of(atomic_numbers, number));
    upload(elements_, elements, stream);
    upload_tiles(elements, static_cast<int>(atomic_numbers.size()), stream);
    upload_chunks(stream);
    is_set_ = true;
}

void AtomSet::upload_tiles(const std::vector<int32_t>& elements, int element_count, cudaStream_t stream) {
    std::vector<bool> is_present(static_cast<size_t>(element_count));
    for (const int32_t element : elements) is_present[static_cast<size_t>(element)] = true;
    elements_present_.clear();
    for (int32_t z = 0; z < element_count; ++z)
        if (is_present[static_cast<size_t>(z)]) elements_present_.push_back(z);
    std::vector<int32_t> order;
    std::vector<Tile> tiles;
    const auto owned_count = static_cast<int32_t>(owned_count_), atom_count = static_cast<int32_t>(elements.size());
    append_tiles(elements, 0, owned_count, element_count, order, tiles);
    const auto owned_tiles = static_cast<int32_t>(tiles.size());
    append_tiles(elements, owned_count, atom_count, element_count, order, tiles);
    upload(order_, order, stream);
    upload(tiles_, tiles, stream);
    tiles_view_ = {tiles_.data(), order_.data(), owned_tiles, owned_count};
    ghost_tiles_view_ = {tiles_.data() + owned_tiles, order_.data() + owned_count,
                         static_cast<int32_t>(tiles.size()) - owned_tiles, atom_count - owned_count};
}

void AtomSet::upload_chunks(cudaStream_t stream) {
    std::vector<AtomChunk> chunks;
    std::vector<int32_t> first_chunk = {0};
    int32_t begin = 0;
    for (int64_t count : atom_counts_) {
        const int32_t end = begin + static_cast<int32_t>(count);
        for (int32_t at = begin; at < end; at += kAtomsPerChunk)
            chunks.push_back({at, std::min(at + kAtomsPerChunk, end)});
        first_chunk.push_back(static_cast<int32_t>(chunks.size()));
        begin = end;
    }
    upload(chunks_, chunks, stream);
    upload(first_chunk_, first_chunk, stream);
    systems_view_ = {chunks_.data(), first_chunk_.data(), static_cast<int32_t>(chunks.size()),
                     static_cast<int32_t>(atom_counts_.size()), static_cast<int32_t>(owned_count_)};
}

}  // namespace mlff::gpu
