// SPDX-License-Identifier: MIT
// Scratch memory for the edges of fused messages: for all of them or, in larger systems or with little memory, for one
// chunk at a time. For CUDA sources only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

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

    void add_layer(const FusedMessages& layer) { layers_.push_back(&layer); }

    void list(BufferList& list, int64_t atoms, int64_t edges, bool has_gradients) {
        const bool is_divided = has_gradients && divided_bytes(edges) <= most_bytes(atoms);
        list.add(memory_, is_divided ? divided_bytes(edges) : shared_bytes(atoms, edges, has_gradients), "the edges");
    }

    // Where there is enough memory for all layers, each has its own part, and what it prepares in the forward pass is
    // still there in the reverse. Otherwise every layer has all of it.
    struct OfLayer : FusedMessages::Scratch {
        bool is_own = false;
    };
    OfLayer of(const FusedMessages& layer, int64_t atoms, int64_t edges) const {
        const int64_t divided = divided_bytes(edges);
        if (divided > std::min(memory_.capacity(), most_bytes(atoms)))
            return {{memory_.data(), std::min(memory_.capacity(), shared_bytes(atoms, edges, true)), edges},
                    layers_.size() == 1};
        unsigned char* at = memory_.data();
        for (const FusedMessages* other : layers_) {
            if (other == &layer) break;
            at += bytes_of(*other, true, edges);
        }
        return {{at, bytes_of(layer, true, edges), edges}, true};
    }

private:
    static int64_t bytes_of(const FusedMessages& layer, bool is_reverse, int64_t edges) {
        constexpr int64_t kAlignment = 128;
        const int64_t bytes = layer.scratch_bytes_per_edge(is_reverse) * (edges + kEdgesPerTile);
        return (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    int64_t divided_bytes(int64_t edges) const {
        int64_t sum = 0;
        for (const FusedMessages* layer : layers_) sum += bytes_of(*layer, true, edges);
        return sum;
    }
    int64_t shared_bytes(int64_t atoms, int64_t edges, bool has_gradients) const {
        int64_t most = 0;
        for (const FusedMessages* layer : layers_) most = std::max(most, bytes_of(*layer, has_gradients, edges));
        return std::min(most, most_bytes(atoms));
    }
    int64_t most_bytes(int64_t atoms) const {
        constexpr int64_t kEnough = int64_t{2} << 30, kForEachAtom = 32 << 10, kLeast = 16 << 20;
        const int64_t share = most_bytes_ > 0 ? most_bytes_ : std::max(kLeast, memory_limit_bytes_ / 8);
        return std::min(std::max(kEnough, kForEachAtom * atoms), share);
    }

    int64_t most_bytes_, memory_limit_bytes_;
    std::vector<const FusedMessages*> layers_;
    mlff::gpu::DeviceBuffer<unsigned char> memory_;
};

}  // namespace mlff::equivariant::gpu
