// SPDX-License-Identifier: MIT
#include "device/gpu.h"

namespace mlff {

GpuInventory query_gpus() {
    GpuInventory inventory;
    inventory.why_none = "this build of mlff has no CUDA";
    return inventory;
}

}  // namespace mlff
