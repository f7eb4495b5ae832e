// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "gpu/runtime/event_timer.h"
#include "gpu/runtime/gpu.h"
#include "gpu/runtime/gpu_peaks.h"
#include "gpu/runtime/work_stream.h"

namespace mlff {

GpuInventory query_gpus() {
    GpuInventory inventory;
    inventory.why_none = "this build of mlff has no CUDA";
    return inventory;
}

GpuMemoryState gpu_memory_state(int) { fail(Status::device, gpu_inventory().why_none); }

void gpu_synchronize(int) { fail(Status::device, gpu_inventory().why_none); }

GpuPeaks measure_gpu_peaks(int) { fail(Status::device, gpu_inventory().why_none); }

std::unique_ptr<EventTimer::Events> make_gpu_events(int, void*) { fail(Status::device, gpu_inventory().why_none); }

std::unique_ptr<WorkStream> make_gpu_stream(int) { fail(Status::device, gpu_inventory().why_none); }

}  // namespace mlff
