// SPDX-License-Identifier: MIT
#include "zbl/model.h"

#include <algorithm>

#include "core/elements.h"
#include "core/error.h"
#include "potential/pair_evaluator.h"
#include "zbl/functions/pairs.h"
#include "zbl/gpu/step.h"

namespace mlff {
namespace {

// V(r) for two atomic numbers.
class ZblTerm {
public:
    explicit ZblTerm(const std::vector<int>& elements)
        : slot_(kMaxAtomicNumber + 1, 0), count_(elements.size()), pairs_(zbl::pairs_of(elements)) {
        for (size_t i = 0; i < elements.size(); ++i) slot_[static_cast<size_t>(elements[i])] = i;
    }
    zbl::RepulsionValue operator()(int first, int second, double r) const {
        return zbl::pair_repulsion(
            pairs_[slot_[static_cast<size_t>(first)] * count_ + slot_[static_cast<size_t>(second)]], r);
    }

private:
    std::vector<size_t> slot_;  // [atomic number]
    size_t count_;
    std::vector<zbl::RepulsionPair> pairs_;
};

class ZblModel : public Model {
public:
    explicit ZblModel(std::vector<int> elements) {
        summary_.class_name = "ZblRepulsion";
        summary_.elements = std::move(elements);
        for (const int z : summary_.elements) summary_.cutoff = std::max(summary_.cutoff, 2 * covalent_radius(z));
        summary_.heads = {"Default"};
    }
    const ModelSummary& summary() const override { return summary_; }

    JsonValue description() const override {
        return JsonValue::Object{{"class", summary_.class_name},
                                 {"note", "screened repulsion of nuclei (ZBL), zero beyond the sum of covalent radii"},
                                 {"cutoff", summary_.cutoff},
                                 {"elements", summary_.elements},
                                 {"heads", summary_.heads},
                                 {"dtype", "float64"},
                                 {"parameters", 0},
                                 {"runnable", true},
                                 {"units", units_json()}};
    }

    // The repulsion is always computed in double, so it accepts the precision of the other terms of a sum.
    Precision choose_precision(const Device&, Precision wanted) const override {
        return wanted == Precision::automatic ? Precision::fp64 : wanted;
    }
    bool runs_on_gpu() const override { return zbl::gpu::is_available(); }

    std::shared_ptr<const Model> restricted_to(const std::vector<int>& elements) const override {
        std::vector<int> kept;
        std::set_intersection(elements.begin(), elements.end(), summary_.elements.begin(), summary_.elements.end(),
                              std::back_inserter(kept));
        return std::make_shared<ZblModel>(std::move(kept));
    }

    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions& options) const override {
        if (!options.optimizations.fused_messages) fail(Status::unsupported, "fused=off: this model has no messages");
        if (options.device.is_gpu()) return zbl::gpu::make_gpu_evaluator(summary_.elements, options);
        return std::make_unique<PairEvaluator<ZblTerm>>(ZblTerm(summary_.elements));
    }
    MakeStepModel make_step_model(const BackendOptions&) const override {
        return zbl::gpu::make_step_model(summary_.elements);
    }

private:
    ModelSummary summary_;
};

}  // namespace

std::shared_ptr<Model> make_zbl_model() {
    std::vector<int> elements;
    for (int z = 1; z <= kMaxAtomicNumber && covalent_radius(z) > 0; ++z) elements.push_back(z);
    return std::make_shared<ZblModel>(std::move(elements));
}

}  // namespace mlff
