// SPDX-License-Identifier: MIT
#include "gpu/runtime/gpu.h"

#include <optional>

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

Device device_named(std::string_view name) {
    if (name == "auto") return gpu_inventory().gpus.empty() ? Device{} : Device{Device::Kind::gpu};
    const std::optional<Device> device = parse_device(name);
    if (!device)
        fail(Status::argument, "device '", name, "' is none of auto, cpu, reference, cuda, cuda:0, cuda:1, ...");
    if (device->is_gpu()) gpu_ordinal(*device);
    return *device;
}

}  // namespace mlff
