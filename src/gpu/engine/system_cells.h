// SPDX-License-Identifier: MIT
// The cells of the systems that are evaluated together, on the device, for terms that need more than edges.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <span>
#include <vector>

#include "core/system_view.h"
#include "gpu/engine/buffer_list.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::gpu {

struct SystemCell {
    Mat3 vectors{};  // in rows; zero where there is none
    std::array<bool, 3> periodic{};

    bool operator==(const SystemCell&) const = default;
};

class SystemCells {
public:
    void list_buffers(BufferList& list, int64_t system_count);
    // Device memory must have been reserved. In the order of the stream: steps that were enqueued before keep their
    // cells. Does nothing while the cells stay as they are.
    void set(std::span<const SystemView> systems, cudaStream_t stream);
    void forget() { known_.clear(); }  // to be called when the memory may have moved

    // [system], on the device. set() does not change the address, so that graphs stay valid.
    const SystemCell* data() const { return cells_.data(); }

private:
    DeviceBuffer<SystemCell> cells_;
    std::vector<SystemCell> known_, given_;
};

}  // namespace mlff::gpu
