// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "device/gpu.h"

namespace mlff {

GpuInventory query_gpus() {
    GpuInventory inventory;
    inventory.why_none = "this build of mlff has no CUDA";
    return inventory;
}

int64_t gpu_used_bytes(int) { fail(Status::device, gpu_inventory().why_none); }

}  // namespace mlff
