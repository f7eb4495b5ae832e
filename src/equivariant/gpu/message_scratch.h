// SPDX-License-Identifier: MIT
// Scratch memory for the edges of fused messages: for all of them or, in larger systems or with little memory, for one
// chunk at a time. Layers share it. For CUDA sources only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "equivariant/gpu/fused_messages.h"
#include "gpu/engine/buffer_list.h"
#include "gpu/runtime/cuda_check.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

class MessageScratch {
public:
    // At most `most_bytes` (0: a default), and a part of `memory_limit_bytes` (0: of the memory of the GPU).
    MessageScratch(int64_t most_bytes, int64_t memory_limit_bytes)
        : most_bytes_(most_bytes), memory_limit_bytes_(memory_limit_bytes) {
        size_t free_memory = 0, total_memory = 0;
        mlff::gpu::check(cudaMemGetInfo(&free_memory, &total_memory), "asking for free memory");
        if (memory_limit_bytes_ == 0) memory_limit_bytes_ = static_cast<int64_t>(total_memory);
    }

    void add_layer(const FusedMessages& layer) {
        ++layer_count_;
        for (const bool is_reverse : {false, true})
            bytes_per_edge_[is_reverse] =
                std::max(bytes_per_edge_[is_reverse], layer.scratch_bytes_per_edge(is_reverse));
    }
    int layer_count() const { return layer_count_; }

    void list(BufferList& list, int64_t atoms, int64_t edges, bool has_gradients) {
        list.add(memory_, bytes(atoms, edges, has_gradients), "the edges");
    }
    FusedMessages::Scratch view(int64_t atoms, int64_t edge_capacity) const {
        return {memory_.data(), std::min(memory_.capacity(), bytes(atoms, edge_capacity, true)), edge_capacity};
    }

private:
    int64_t bytes(int64_t atoms, int64_t edges, bool has_gradients) const {
        constexpr int64_t kEnough = int64_t{2} << 30, kForEachAtom = 32 << 10, kLeast = 16 << 20;
        const int64_t share = most_bytes_ > 0 ? most_bytes_ : std::max(kLeast, memory_limit_bytes_ / 8);
        return std::min(
            {bytes_per_edge_[has_gradients] * (edges + kEdgesPerTile), std::max(kEnough, kForEachAtom * atoms), share});
    }

    int64_t most_bytes_, memory_limit_bytes_;
    int64_t bytes_per_edge_[2] = {};  // forward, and with the reverse
    int layer_count_ = 0;
    mlff::gpu::DeviceBuffer<unsigned char> memory_;
};

}  // namespace mlff::equivariant::gpu
