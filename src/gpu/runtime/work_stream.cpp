// SPDX-License-Identifier: MIT
#include "gpu/runtime/work_stream.h"

#include "gpu/runtime/gpu.h"

namespace mlff {

std::unique_ptr<WorkStream> make_work_stream(const Device& device) {
    return device.is_gpu() ? make_gpu_stream(gpu_ordinal(device)) : std::make_unique<WorkStream>();
}

}  // namespace mlff
