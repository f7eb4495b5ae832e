// SPDX-License-Identifier: MIT
#include "painn/model.h"

#include "core/error.h"
#include "painn/cpu/evaluator.h"
#include "painn/gpu/evaluator.h"
#include "painn/reference/evaluator.h"
#include "painn/weights/weights.h"

namespace mlff {
namespace {

class PainnModel : public Model {
public:
    explicit PainnModel(painn::Weights weights) : weights_(std::make_shared<const painn::Weights>(std::move(weights))) {
        summary_.class_name = "PaiNN";
        summary_.cutoff = weights_->cutoff;
        summary_.layer_count = static_cast<int>(weights_->blocks.size());
        summary_.elements = weights_->atomic_numbers;
        summary_.heads = {"Default"};
        summary_.dtype = weights_->dtype;
        summary_.parameter_count = weights_->parameter_count;
        summary_.descriptor_count = weights_->hidden;
    }

    const ModelSummary& summary() const override { return summary_; }
    JsonValue description() const override {
        return JsonValue::Object{
            {"class", summary_.class_name},
            {"container", "mlff-painn safetensors"},
            {"elements", summary_.elements},
            {"cutoff", summary_.cutoff},
            {"hidden", weights_->hidden},
            {"blocks", weights_->blocks.size()},
            {"radial_functions", weights_->radial_count},
            {"heads", summary_.heads},
            {"atomic_energies", JsonValue::Object{{summary_.heads.front(), weights_->atomic_energies}}},
            {"pair_repulsion", !weights_->repulsion_radii.empty()},
            {"near_field", !weights_->closest.empty()},
            {"dtype", dtype_name(summary_.dtype)},
            {"parameters", summary_.parameter_count},
            {"descriptors", summary_.descriptor_count},
            {"card", weights_->card},
            {"runnable", true},
            {"why_not_runnable", nullptr},
            {"units", units_json()}};
    }

    Precision choose_precision(const Device& device, Precision wanted) const override {
        const bool has_mixed = device.kind != Device::Kind::reference;
        if (wanted == Precision::automatic) return has_mixed ? Precision::mixed : Precision::fp64;
        if (wanted == Precision::fp64 || (wanted == Precision::mixed && has_mixed) ||
            (wanted == Precision::fast && device.is_gpu()))
            return wanted;
        fail(Status::unsupported, "precision ", precision_name(wanted), " is not available on device '", device.name(),
             "' for PaiNN; fp64 is",
             device.is_gpu() ? ", and mixed and fast"
             : has_mixed     ? ", and mixed"
                             : "");
    }
    bool runs_on_gpu() const override { return painn::gpu::why_not_on_gpu(*weights_).empty(); }

    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        require_tables_on_gpu(options);
        if (options.device.is_gpu()) return painn::gpu::make_gpu_evaluator(weights_, options);
        if (options.device.kind == Device::Kind::reference)
            return std::make_unique<painn::reference::ReferenceEvaluator>(weights_);
        return painn::cpu::make_cpu_evaluator(weights_, options);
    }
    MakeStepModel make_step_model(const BackendOptions& options) const override {
        require_tables_on_gpu(options);
        return painn::gpu::make_step_model(weights_, options);
    }

private:
    std::shared_ptr<const painn::Weights> weights_;
    ModelSummary summary_;
};

}  // namespace

bool is_painn_file(const Safetensors& file) { return painn::looks_like_painn(file); }

std::shared_ptr<Model> make_painn_model(const Safetensors& file, const std::string& name_for_errors) {
    return std::make_shared<PainnModel>(painn::load_weights(file, name_for_errors));
}

}  // namespace mlff
