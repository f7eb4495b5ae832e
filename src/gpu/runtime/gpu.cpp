// SPDX-License-Identifier: MIT
#include "gpu/runtime/gpu.h"

namespace mlff {

const GpuInventory& gpu_inventory() {
    static const GpuInventory inventory = query_gpus();
    return inventory;
}

int gpu_ordinal(const std::string& device) {
    return gpu_inventory().gpus.at(static_cast<size_t>(std::stoi(device.substr(5)))).ordinal;
}

}  // namespace mlff
