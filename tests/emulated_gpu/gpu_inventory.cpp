// SPDX-License-Identifier: MIT
// The emulated GPU, as the library finds it.
#include "gpu/runtime/gpu.h"

namespace mlff {

GpuInventory query_gpus() {
    GpuInventory inventory;
    inventory.gpus.push_back({.ordinal = 0, .name = "emulated", .compute_capability = 90, .memory_bytes = 1 << 30});
    return inventory;
}

}  // namespace mlff
