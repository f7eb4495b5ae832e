// SPDX-License-Identifier: MIT
// The atoms of one system or of a batch on the device: their elements, tiles of atoms of one element, and the atoms of
// each system.
#pragma once

#include <cuda_runtime.h>

#include <span>
#include <vector>

#include "core/system_view.h"
#include "gpu/engine/atom_rows.h"
#include "gpu/engine/buffer_list.h"
#include "gpu/engine/totals.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::gpu {

class AtomSet {
public:
    // Whether these are the atoms of the last set(). Positions do not matter.
    bool holds(std::span<const SystemView> systems, int64_t owned_count) const;
    // Replaces the atoms; if it fails, there are none. Device memory must have been reserved. `atomic_numbers` are
    // those of the model's elements; every atom must have one of them. Atoms from `owned_count` on are ghosts, and have
    // separate tiles.
    void set(std::span<const SystemView> systems, int64_t owned_count, std::span<const int> atomic_numbers,
             cudaStream_t stream);
    void forget() { is_set_ = false; }

    void list_buffers(BufferList& list, int64_t atom_count, int64_t system_count, int element_count);

    int64_t atom_count() const { return static_cast<int64_t>(numbers_.size()); }  // with ghosts
    int64_t owned_count() const { return owned_count_; }
    const std::vector<int>& elements_present() const { return elements_present_; }
    const int32_t* elements() const { return elements_.data(); }  // [atom], on the device
    const TilesView& tiles() const { return tiles_view_; }
    const TilesView& ghost_tiles() const { return ghost_tiles_view_; }
    const SystemsView& systems() const { return systems_view_; }

private:
    void upload_tiles(const std::vector<int32_t>& elements, int element_count, cudaStream_t stream);
    void upload_chunks(cudaStream_t stream);

    bool is_set_ = false;
    std::vector<int32_t> numbers_;      // [atom], atomic numbers
    std::vector<int64_t> atom_counts_;  // [system]
    int64_t owned_count_ = 0;
    std::vector<int> elements_present_;
    DeviceBuffer<int32_t> elements_, order_, first_chunk_;
    DeviceBuffer<Tile> tiles_;
    DeviceBuffer<AtomChunk> chunks_;
    TilesView tiles_view_, ghost_tiles_view_;
    SystemsView systems_view_;
};

}  // namespace mlff::gpu
