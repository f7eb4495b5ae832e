// SPDX-License-Identifier: MIT
#include "gpu/engine/system_cells.h"

#include "gpu/runtime/cuda_check.h"

namespace mlff::gpu {
namespace {

constexpr const char* kPurpose = "the cells";

__global__ void write_cell_kernel(SystemCell cell, SystemCell* to) {
    mlff::gpu::await_predecessor();
    *to = cell;
}

}  // namespace

void SystemCells::list_buffers(BufferList& list, int64_t system_count) { list.add(cells_, system_count, kPurpose); }

void SystemCells::set(std::span<const SystemView> systems, cudaStream_t stream) {
    given_.clear();
    for (const SystemView& system : systems) given_.push_back({system.cell, system.periodic});
    if (given_ == known_) return;
    known_.clear();
    const auto count = static_cast<int64_t>(given_.size());
    if (count == 1) {  // an argument of a kernel is copied when it is launched; memory of the host might be read later
        cells_.resize_discard(1, kPurpose);
        launch(kPurpose, write_cell_kernel, 1, 1, stream, given_.front(), cells_.data());
    } else {
        cells_.upload(given_.data(), count, kPurpose, stream);
    }
    known_ = given_;
}

}  // namespace mlff::gpu
