// SPDX-License-Identifier: MIT
#include "nequip/model.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "nequip/cpu/evaluator.h"
#include "nequip/gpu/evaluator.h"
#include "nequip/reference/evaluator.h"
#include "nequip/weights/weights.h"

namespace mlff {
namespace {

JsonValue description_json(const nequip::Description& d) {
    return JsonValue::Object{{"class", d.class_name},
                             {"version", d.version.empty() ? JsonValue() : JsonValue(d.version)},
                             {"elements", d.elements},
                             {"cutoff", d.cutoff},
                             {"max_ell", d.max_degree},
                             {"layer_irreps", d.layer_irreps},
                             {"self_connections", d.self_connections},
                             {"parity", d.is_parity},
                             {"radial", JsonValue::Object{{"basis", "bessel"},
                                                          {"count", d.basis_count},
                                                          {"transform", JsonValue()},
                                                          {"cutoff_exponent", JsonValue()},
                                                          {"cutoff_function", d.cutoff_function},
                                                          {"cutoff_applied_to", "basis"},
                                                          {"hidden_widths", d.hidden_widths}}},
                             {"heads", d.heads},
                             {"dtype", dtype_name(d.dtype)},
                             {"parameters", d.parameter_count},
                             {"units", units_json()}};
}

class NequipModel : public Model {
public:
    explicit NequipModel(ModuleFile file) : file_(std::move(file)), description_(nequip::describe(file_.root)) {
        summary_.class_name = description_.class_name;
        summary_.cutoff = description_.cutoff;
        summary_.layer_count = static_cast<int>(description_.self_connections.size());
        summary_.elements = description_.elements;
        std::sort(summary_.elements.begin(), summary_.elements.end());
        summary_.heads = description_.heads;
        summary_.dtype = description_.dtype;
        summary_.parameter_count = description_.parameter_count;
        summary_.is_mirror_symmetric = description_.is_parity;
        by_head_.resize(summary_.heads.size());
        try {
            summary_.descriptor_count = weights_of(0)->descriptor_count();
            why_not_cuda_ = nequip::gpu::why_not_on_gpu(*weights_of(0));
        } catch (const Error& error) {
            summary_.why_not_runnable = error.what();
        }
    }

    const ModelSummary& summary() const override { return summary_; }
    JsonValue description() const override {
        JsonValue json = description_json(description_);
        json["container"] = file_.container;
        json["descriptors"] = summary_.descriptor_count;
        json["runnable"] = summary_.why_not_runnable.empty();
        json["why_not_runnable"] =
            summary_.why_not_runnable.empty() ? JsonValue() : JsonValue(summary_.why_not_runnable);
        return json;
    }

    // The fast backends have mixed and fp64, the GPU's also `fast`.
    Precision choose_precision(const Device& device, Precision wanted) const override {
        const bool has_mixed = device.is_gpu() || device.kind == Device::Kind::cpu;
        if (wanted == Precision::automatic) return has_mixed ? Precision::mixed : Precision::fp64;
        if (wanted == Precision::fp64 || (wanted == Precision::mixed && has_mixed) ||
            (wanted == Precision::fast && device.is_gpu()))
            return wanted;
        fail(Status::unsupported, "precision ", precision_name(wanted), " is not available on device '", device.name(),
             "' for ", summary_.class_name, "; fp64 is", has_mixed ? ", and mixed" : "",
             device.is_gpu() ? ", and fast" : "");
    }
    bool runs_on_gpu() const override { return summary_.why_not_runnable.empty() && why_not_cuda_.empty(); }

    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        require_runnable(options);
        const auto weights = weights_of(options.head);
        if (options.device.is_gpu()) return nequip::gpu::make_gpu_evaluator(weights, options);
        if (options.device.kind == Device::Kind::cpu) return nequip::cpu::make_cpu_evaluator(weights, options);
        return std::make_unique<nequip::reference::ReferenceEvaluator>(weights);
    }
    MakeStepModel make_step_model(const BackendOptions& options) const override {
        require_runnable(options);
        return nequip::gpu::make_step_model(weights_of(options.head), options);
    }

private:
    void require_runnable(const BackendOptions& options) const {
        if (!summary_.why_not_runnable.empty()) fail(Status::unsupported, file_.path, ": ", summary_.why_not_runnable);
        require_tables_on_gpu(options);
    }

    // What a head adds is a part of its weights.
    std::shared_ptr<const nequip::Weights> weights_of(int head) const {
        if (head < 0 || head >= static_cast<int>(summary_.heads.size()))
            fail(Status::argument, "there is no head ", head, "; the model has heads 0 to ", summary_.heads.size() - 1);
        const std::lock_guard lock(mutex_);
        auto& weights = by_head_[static_cast<size_t>(head)];
        if (!weights) weights = std::make_shared<const nequip::Weights>(nequip::load_weights(file_.root, head));
        return weights;
    }

    ModuleFile file_;
    nequip::Description description_;
    ModelSummary summary_;
    std::string why_not_cuda_;  // "" if the GPU backend can
    mutable std::mutex mutex_;
    mutable std::vector<std::shared_ptr<const nequip::Weights>> by_head_;  // null until it is needed
};

}  // namespace

bool is_nequip_file(const ModuleFile& file) { return nequip::is_nequip_module(file.root); }

std::shared_ptr<Model> make_nequip_model(ModuleFile file) { return std::make_shared<NequipModel>(std::move(file)); }

}  // namespace mlff
