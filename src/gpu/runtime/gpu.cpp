// SPDX-License-Identifier: MIT
#include "gpu/runtime/gpu.h"

#include "core/error.h"

namespace mlff {

const GpuInventory& gpu_inventory() {
    static const GpuInventory inventory = query_gpus();
    return inventory;
}

int gpu_ordinal(const Device& device) {
    const GpuInventory& found = gpu_inventory();
    if (device.index < 0 || static_cast<size_t>(device.index) >= found.gpus.size())
        fail(Status::device, "there is no GPU ", device.index, ": ",
             found.gpus.empty() ? found.why_none : concat("there are ", found.gpus.size()));
    return found.gpus[static_cast<size_t>(device.index)].ordinal;
}

}  // namespace mlff
