// SPDX-License-Identifier: MIT
// Device memory of steps. Every user lists its buffers that grow with the system; all of them are allocated before a
// step. For CUDA sources only.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <optional>
#include <vector>

#include "gpu/engine/buffer_list.h"
#include "gpu/engine/memory_need.h"
#include "gpu/engine/step_results.h"
#include "gpu/neighbors/gpu_neighbor_list.h"
#include "potential/memory_forecasts.h"

namespace mlff::gpu {

class StepMemory {
public:
    using ListBuffers = std::function<void(BufferList& list, const StepSize& size)>;

    // `limit_bytes`: for atoms and edges, without the model; 0: all that is free. `has_moved` is called before memory
    // moves whose addresses are in graphs.
    StepMemory(int64_t limit_bytes, std::function<void()> has_moved)
        : limit_bytes_(limit_bytes), has_moved_(std::move(has_moved)) {}

    // Registers users. Memory for atoms is allocated when the atoms are set, memory for steps before a step.
    void add_atom_buffers(ListBuffers buffers) { atom_buffers_.push_back(std::move(buffers)); }
    void add_step_buffers(ListBuffers buffers) { step_buffers_.push_back(std::move(buffers)); }

    // Throws Error{memory} if a step of this size does not fit together with the neighbour list.
    void admit(const StepSize& size, const GpuNeighborMemory& neighbors) { admit(size, neighbors, 0); }
    // Memory that others are about to take, which counts with that of steps until it is forgotten. Throws
    // Error{memory} if there is no room for it beside the last step.
    void admit_beside(int64_t bytes, int64_t neighbor_bytes);
    void forget_beside(int64_t bytes) { beside_bytes_ -= bytes; }
    void reserve_atoms(const StepSize& size);
    // Also reserves pinned memory for the results.
    void reserve_step(const StepSize& size, int64_t neighbor_bytes, StepResults& results);
    // Call this if the model may now need more memory for the same size.
    void forget_reserved() { reserved_.reset(); }

    MemoryForecast forecast(const StepSize& size, int64_t neighbor_bytes) const;
    int64_t budget() const;  // the limit, else half of all memory of the current GPU

private:
    static BufferList listed(const std::vector<ListBuffers>& users, const StepSize& size);
    void admit(const StepSize& size, const GpuNeighborMemory& neighbors, int64_t new_bytes);
    MemoryThere memory_there(int64_t held_bytes) const;

    int64_t limit_bytes_;
    int64_t beside_bytes_ = 0;  // that others hold
    std::function<void()> has_moved_;
    std::vector<ListBuffers> atom_buffers_, step_buffers_;
    std::optional<StepSize> reserved_;  // the step that memory is reserved for
};

}  // namespace mlff::gpu
