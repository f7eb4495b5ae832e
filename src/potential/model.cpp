// SPDX-License-Identifier: MIT
#include "potential/model.h"

#include "core/error.h"
#include "core/log.h"
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

void Model::warn_of_unused(const SystemView& system) const {
    const auto warn = [&](const char* what, std::atomic<bool>& has_warned) {
        if (is_logged(LogLevel::warning) && !has_warned.exchange(true))
            log(LogLevel::warning, concat(what, " is given, but the model (", summary().class_name,
                                          ") does not use it: it has no effect on the results"));
    };
    // A multiplicity of 0 is not one, and stands for "not given".
    const bool has_spin = system.spin_multiplicity != 1 && system.spin_multiplicity != 0;
    if (system.total_charge != 0 && !summary().takes_charge) warn("a total charge", has_warned_of_charge_);
    if (has_spin && !summary().takes_spin) warn("a spin multiplicity", has_warned_of_spin_);
}

}  // namespace mlff
