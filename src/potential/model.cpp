// SPDX-License-Identifier: MIT
#include "potential/model.h"

#include "gpu/runtime/gpu.h"

namespace mlff {

UsableGpus Model::usable_gpus() const { return {gpu_inventory().gpus.size(), gpu_inventory().why_none}; }

void require_tables_on_gpu(const BackendOptions& options) {
    if (options.device.is_gpu() && options.exact_radial)
        fail(Status::unsupported, "exact radial functions are not available on device '", options.device.name(), "'");
}

MakeStepModel Model::make_step_model(const BackendOptions&) const {
    fail(Status::unsupported, summary().class_name, " cannot be a part of steps on a GPU");
}

}  // namespace mlff
