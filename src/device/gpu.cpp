// SPDX-License-Identifier: MIT
#include "device/gpu.h"

namespace mlff {

const GpuInventory& gpu_inventory() {
    static const GpuInventory inventory = query_gpus();
    return inventory;
}

}  // namespace mlff
