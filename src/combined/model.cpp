// SPDX-License-Identifier: MIT
#include "combined/model.h"

#include <algorithm>

#include "core/error.h"
#include "gpu/engine/make_combined_step.h"
#include "potential/combined_evaluator.h"

namespace mlff {

CombinedModel::CombinedModel(const char* class_name, const char* part_word,
                             std::vector<std::shared_ptr<const Model>> parts, std::vector<Joining> joinings,
                             const std::string& name)
    : summary_(parts.front()->summary()),
      part_word_(part_word),
      parts_(std::move(parts)),
      joinings_(std::move(joinings)) {
    summary_.class_name = class_name;
    for (const auto& part : parts_) {
        const ModelSummary& own = part->summary();
        std::vector<int> common;
        std::set_intersection(summary_.elements.begin(), summary_.elements.end(), own.elements.begin(),
                              own.elements.end(), std::back_inserter(common));
        summary_.elements = std::move(common);
        summary_.takes_charge = summary_.takes_charge || own.takes_charge;
        summary_.takes_spin = summary_.takes_spin || own.takes_spin;
        summary_.is_mirror_symmetric = summary_.is_mirror_symmetric && own.is_mirror_symmetric;
    }
    if (summary_.elements.empty()) fail(Status::argument, name, ": its ", part_word_, " have no element in common");
    summary_.parameter_count = 0;
    summary_.cutoff = summary_.range = 0;
    for (auto& part : parts_) {
        if (auto restricted = part->restricted_to(summary_.elements)) part = std::move(restricted);
        const ModelSummary& own = part->summary();
        summary_.cutoff = std::max(summary_.cutoff, own.cutoff);
        summary_.range = std::max(summary_.range, own.range);
        summary_.layer_count = std::max(summary_.layer_count, own.layer_count);
        summary_.parameter_count += own.parameter_count;
    }
    // One that does not say how far it reaches leaves the whole without an answer.
    summary_.knows_reach = all([](const Model& part) { return part.summary().reach() > 0; });
}

template <class Property>
bool CombinedModel::all(const Property& property) const {
    return std::all_of(parts_.begin(), parts_.end(), [&](const auto& part) { return property(*part); });
}

JsonValue CombinedModel::description_with(const JsonValue& parts) const {
    return JsonValue::Object{{"class", summary_.class_name},
                             {part_word_, parts},
                             {"elements", summary_.elements},
                             {"cutoff", summary_.cutoff},
                             {"range", summary_.reach()},
                             {"heads", summary_.heads},
                             {"dtype", dtype_name(summary_.dtype)},
                             {"parameters", summary_.parameter_count},
                             {"descriptors", summary_.descriptor_count},
                             {"runnable", true},
                             {"why_not_runnable", nullptr},
                             {"units", units_json()}};
}

Precision CombinedModel::choose_precision(const Device& device, Precision wanted) const {
    const Precision chosen = parts_.front()->choose_precision(device, wanted);
    for (const auto& part : parts_) part->choose_precision(device, chosen);
    return chosen;
}
bool CombinedModel::runs_on_gpu() const {
    return all([](const Model& part) { return part.runs_on_gpu() && part.shares_gpu_steps(); });
}
bool CombinedModel::gives_atom_energies() const {
    return all([](const Model& part) { return part.gives_atom_energies(); });
}
bool CombinedModel::gives_virial(const SystemView& system) const {
    return all([&](const Model& part) { return part.gives_virial(system); });
}

std::unique_ptr<Evaluator> CombinedModel::make_evaluator(const BackendOptions& options) const {
    if (options.device.is_gpu())
        return gpu::make_combined_step_evaluator(options, make_step_models(options), joinings_);
    std::vector<CombinedPart> evaluators;
    for (size_t p = 0; p < parts_.size(); ++p)
        evaluators.push_back({parts_[p]->make_evaluator(options_of(p, options)), parts_[p]->summary().cutoff});
    return make_combined_evaluator(std::move(evaluators), joinings_);
}
MakeStepModel CombinedModel::make_step_model(const BackendOptions& options) const {
    return gpu::make_combined_step(make_step_models(options), joinings_);
}
std::vector<MakeStepModel> CombinedModel::make_step_models(const BackendOptions& options) const {
    std::vector<MakeStepModel> made;
    for (size_t p = 0; p < parts_.size(); ++p) made.push_back(parts_[p]->make_step_model(options_of(p, options)));
    return made;
}

}  // namespace mlff
