// SPDX-License-Identifier: MIT
#include "mace/model.h"

#include <algorithm>

#include "core/error.h"
#include "mace/cpu/evaluator.h"
#include "mace/gpu/evaluator.h"
#include "mace/plan/layer_plan.h"
#include "mace/reference/evaluator.h"
#include "mace/weights/description.h"
#include "mace/weights/weights.h"

namespace mlff {
namespace {

JsonValue layer_json(const mace::LayerDescription& layer) {
    return JsonValue::Object{
        {"interaction", layer.interaction},
        {"message_irreps", layer.message_irreps},
        {"output_irreps", layer.output_irreps},
        {"correlation", layer.correlation},
        {"readout", layer.readout.empty() ? JsonValue() : JsonValue(layer.readout)},
        {"average_neighbors", layer.average_neighbor_count ? JsonValue(*layer.average_neighbor_count) : JsonValue()}};
}

JsonValue description_json(const mace::Description& d) {
    JsonValue layers = JsonValue::Array(), energies = JsonValue::Object();
    for (const auto& layer : d.layers) layers.push_back(layer_json(layer));
    for (size_t head = 0; head < d.atomic_energies.size(); ++head)
        energies[head < d.heads.size() ? d.heads[head] : std::to_string(head)] = d.atomic_energies[head];
    const JsonValue radial = JsonValue::Object{
        {"basis", d.radial.basis},
        {"count", d.radial.basis_count},
        {"transform", d.radial.transform.empty() ? JsonValue() : JsonValue(d.radial.transform)},
        {"cutoff_exponent", d.radial.cutoff_exponent ? JsonValue(*d.radial.cutoff_exponent) : JsonValue()},
        {"cutoff_applied_to", d.radial.applies_cutoff_to_basis ? "basis" : "messages"},
        {"hidden_widths", d.radial.hidden_widths}};
    return JsonValue::Object{{"class", d.class_name},
                             {"wrapper", d.wrapper.empty() ? JsonValue() : JsonValue(d.wrapper)},
                             {"elements", d.elements},
                             {"cutoff", d.cutoff},
                             {"max_ell", d.max_degree},
                             {"hidden_irreps", d.hidden_irreps},
                             {"layers", layers},
                             {"radial", radial},
                             {"heads", d.heads},
                             {"fixed_head", d.fixed_head ? JsonValue(*d.fixed_head) : JsonValue()},
                             {"atomic_energies", energies},
                             {"scale", d.scale},
                             {"shift", d.shift},
                             {"pair_repulsion", d.has_pair_repulsion},
                             {"extra_inputs", d.extra_inputs},
                             {"gate", d.gate.empty() ? JsonValue() : JsonValue(d.gate)},
                             {"layout", d.tensor_layout},
                             {"dtype", dtype_name(d.dtype)},
                             {"parameters", d.parameter_count},
                             {"units", units_json()}};
}

class MaceModel : public Model {
public:
    explicit MaceModel(ModuleFile file) : file_(std::move(file)), description_(mace::describe(file_.root)) {
        summary_.class_name = description_.class_name;
        summary_.cutoff = description_.cutoff;
        summary_.layer_count = static_cast<int>(description_.layers.size());
        summary_.elements = description_.elements;
        std::sort(summary_.elements.begin(), summary_.elements.end());
        summary_.heads = description_.heads;
        summary_.dtype = description_.dtype;
        summary_.parameter_count = description_.parameter_count;
        try {
            weights_ = std::make_shared<const mace::Weights>(mace::load_weights(file_.root));
            summary_.cutoff = weights_->cutoff;
            summary_.descriptor_count = weights_->descriptor_count();
            if (weights_->fixed_head >= 0) summary_.fixed_head = weights_->fixed_head;
            if (weights_->joint_embedding)
                for (const mace::JointEmbedding::Input& input : weights_->joint_embedding->inputs)
                    (input.quantity == mace::JointEmbedding::Quantity::total_charge ? summary_.takes_charge
                                                                                    : summary_.takes_spin) = true;
            why_not_fast_ = mace::plan::why_not_on_cpu(*weights_);
            why_not_cuda_ = mace::gpu::why_not_on_gpu(*weights_);
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

    // The fast backends have mixed and fp64, the GPU's also `fast`; models that the CPU's lacks run on the reference,
    // in fp64.
    Precision choose_precision(const Device& device, Precision wanted) const override {
        const bool is_cpu = device.kind == Device::Kind::cpu,
                   has_mixed = device.is_gpu() || (is_cpu && why_not_fast_.empty());
        if (wanted == Precision::automatic) return has_mixed ? Precision::mixed : Precision::fp64;
        if (wanted == Precision::fp64 || (wanted == Precision::mixed && has_mixed) ||
            (wanted == Precision::fast && device.is_gpu()))
            return wanted;
        if (wanted == Precision::mixed && is_cpu)
            fail(Status::unsupported, "this model runs in fp64 only: ", why_not_fast_);
        fail(Status::unsupported, "precision ", precision_name(wanted), " is not available on device '", device.name(),
             "' for MACE; fp64 is", has_mixed ? ", and mixed" : "", device.is_gpu() ? ", and fast" : "");
    }
    bool runs_on_gpu() const override { return weights_ && why_not_cuda_.empty(); }

    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        require_runnable(options);
        if (options.device.is_gpu()) return mace::gpu::make_gpu_evaluator(weights_, options);
        if (options.device.kind == Device::Kind::cpu && why_not_fast_.empty())
            return mace::cpu::make_cpu_evaluator(weights_, options);
        return std::make_unique<mace::reference::ReferenceEvaluator>(weights_, options.head);
    }
    MakeStepModel make_step_model(const BackendOptions& options) const override {
        require_runnable(options);
        return mace::gpu::make_step_model(weights_, options);
    }

private:
    void require_runnable(const BackendOptions& options) const {
        if (!weights_) fail(Status::unsupported, file_.path, ": ", summary_.why_not_runnable);
        require_tables_on_gpu(options);
    }

    ModuleFile file_;
    mace::Description description_;
    ModelSummary summary_;
    std::shared_ptr<const mace::Weights> weights_;  // null if the model cannot be run
    std::string why_not_fast_;                      // "" if the fast CPU backend can
    std::string why_not_cuda_;                      // "" if the GPU backend can
};

}  // namespace

std::shared_ptr<Model> make_mace_model(ModuleFile file) { return std::make_shared<MaceModel>(std::move(file)); }

}  // namespace mlff
