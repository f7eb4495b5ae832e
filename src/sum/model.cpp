// SPDX-License-Identifier: MIT
#include "sum/model.h"

#include <algorithm>

#include "core/error.h"
#include "gpu/engine/make_combined_step.h"
#include "potential/combined_evaluator.h"

namespace mlff {
namespace {

class SumModel : public Model {
public:
    SumModel(std::vector<std::shared_ptr<const Model>> terms, const std::string& name) {
        summary_ = terms.front()->summary();
        summary_.class_name = "Sum";
        for (const auto& term : terms) {
            const ModelSummary& own = term->summary();
            if (!own.why_not_runnable.empty()) fail(Status::unsupported, name, ": ", own.why_not_runnable);
            if (own.member_count > 0)
                fail(Status::unsupported, name, ": a committee cannot be in a sum; add the other terms to its members");
            if (!term->shares_gpu_steps())
                fail(Status::unsupported, name, ": ", own.class_name, " is a Python model: it cannot be in a sum");
            if (!(own.reach() > 0))
                fail(Status::unsupported, name, ": ", own.class_name,
                     " finds its neighbours itself: it cannot be in a sum");
            std::vector<int> common;
            std::set_intersection(summary_.elements.begin(), summary_.elements.end(), own.elements.begin(),
                                  own.elements.end(), std::back_inserter(common));
            summary_.elements = std::move(common);
            summary_.takes_charge = summary_.takes_charge || own.takes_charge;
            summary_.takes_spin = summary_.takes_spin || own.takes_spin;
        }
        if (summary_.elements.empty()) fail(Status::argument, name, ": its terms have no element in common");
        summary_.parameter_count = 0;
        summary_.cutoff = summary_.range = 0;
        for (const auto& term : terms) {
            const auto restricted = term->restricted_to(summary_.elements);
            terms_.push_back(restricted ? restricted : term);
            summary_.cutoff = std::max(summary_.cutoff, terms_.back()->summary().cutoff);
            summary_.range = std::max(summary_.range, terms_.back()->summary().range);
            summary_.layer_count = std::max(summary_.layer_count, terms_.back()->summary().layer_count);
            summary_.parameter_count += terms_.back()->summary().parameter_count;
        }
    }

    const ModelSummary& summary() const override { return summary_; }
    JsonValue description() const override {
        JsonValue terms = JsonValue::Array();
        for (const auto& term : terms_) terms.push_back(term->description());
        return JsonValue::Object{{"class", summary_.class_name},
                                 {"terms", terms},
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

    // The precision of the first term. The other terms must have it too.
    Precision choose_precision(const Device& device, Precision wanted) const override {
        const Precision chosen = terms_.front()->choose_precision(device, wanted);
        for (const auto& term : terms_) term->choose_precision(device, chosen);
        return chosen;
    }
    bool shares_gpu_steps() const override {
        return std::all_of(terms_.begin(), terms_.end(), [](const auto& term) { return term->shares_gpu_steps(); });
    }
    bool runs_on_gpu() const override {
        return std::all_of(terms_.begin(), terms_.end(), [](const auto& term) { return term->runs_on_gpu(); });
    }
    bool gives_atom_energies() const override {
        return std::all_of(terms_.begin(), terms_.end(), [](const auto& term) { return term->gives_atom_energies(); });
    }
    bool gives_virial(const SystemView& system) const override {
        return std::all_of(terms_.begin(), terms_.end(), [&](const auto& term) { return term->gives_virial(system); });
    }

    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        if (options.device.is_gpu())
            return gpu::make_combined_step_evaluator(options, make_step_models(options), joining_as_sum(terms_.size()));
        std::vector<CombinedPart> evaluators;
        for (size_t t = 0; t < terms_.size(); ++t)
            evaluators.push_back({terms_[t]->make_evaluator(options_of(t, options)), terms_[t]->summary().cutoff});
        return make_combined_evaluator(std::move(evaluators), joining_as_sum(terms_.size()));
    }
    MakeStepModel make_step_model(const BackendOptions& options) const override {
        return gpu::make_combined_step(make_step_models(options), joining_as_sum(terms_.size()));
    }

private:
    // The chosen head is that of the first term. The other terms use their first head.
    static BackendOptions options_of(size_t term, BackendOptions options) {
        if (term > 0) options.head = 0;
        return options;
    }
    std::vector<MakeStepModel> make_step_models(const BackendOptions& options) const {
        std::vector<MakeStepModel> made;
        for (size_t t = 0; t < terms_.size(); ++t) made.push_back(terms_[t]->make_step_model(options_of(t, options)));
        return made;
    }

    std::vector<std::shared_ptr<const Model>> terms_;
    ModelSummary summary_;
};

}  // namespace

std::shared_ptr<const Model> make_sum_model(std::vector<std::shared_ptr<const Model>> terms, const std::string& name) {
    return std::make_shared<SumModel>(std::move(terms), name);
}

}  // namespace mlff
