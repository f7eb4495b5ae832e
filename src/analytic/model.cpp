// SPDX-License-Identifier: MIT
#include "analytic/model.h"

#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "core/error.h"
#include "potential/pair_evaluator.h"

namespace mlff {
namespace {

constexpr double kDepth = 1.0;        // eV
constexpr double kSteepness = 1.8;    // 1/angstrom
constexpr double kSwitchBegin = 3.0;  // angstrom
constexpr double kCutoff = 5.0;       // angstrom

struct Pair {
    double energy;
    double slope;  // dV/dr
};

Pair morse(double distance, double equilibrium) {
    const double decay = std::exp(-kSteepness * (distance - equilibrium));
    const double well = kDepth * ((1 - decay) * (1 - decay) - 1);
    const double well_slope = 2 * kDepth * kSteepness * (1 - decay) * decay;
    const double t = std::clamp((distance - kSwitchBegin) / (kCutoff - kSwitchBegin), 0.0, 1.0);
    const double fade = 1 + t * t * t * (-10 + t * (15 - 6 * t));
    const double fade_slope = -30 * t * t * (1 - t) * (1 - t) / (kCutoff - kSwitchBegin);
    return {well * fade, well_slope * fade + well * fade_slope};
}

struct MorseTerm {
    Pair operator()(int first, int second, double r) const {
        return morse(r, covalent_radius(first) + covalent_radius(second));
    }
};

class AnalyticModel : public Model {
public:
    AnalyticModel() {
        summary_.class_name = "AnalyticPairPotential";
        summary_.cutoff = kCutoff;
        for (int z = 1; z <= kMaxAtomicNumber && covalent_radius(z) > 0; ++z) summary_.elements.push_back(z);
        summary_.heads = {"Default"};
        summary_.parameter_count = 0;
    }
    const ModelSummary& summary() const override { return summary_; }

    JsonValue description() const override {
        return JsonValue::Object{
            {"class", summary_.class_name},
            {"note", "demonstration only: Morse pair terms from covalent radii, fitted to nothing"},
            {"cutoff", kCutoff},
            {"elements", summary_.elements},
            {"heads", summary_.heads},
            {"dtype", "float64"},
            {"parameters", 0},
            {"runnable", true},
            {"units", units_json()}};
    }

    Precision choose_precision(const Device&, Precision wanted) const override {
        if (wanted != Precision::automatic && wanted != Precision::fp64)
            fail(Status::unsupported, "the analytic model runs in fp64 only, not in ", precision_name(wanted));
        return Precision::fp64;
    }
    bool runs_on_gpu() const override { return false; }
    std::unique_ptr<Evaluator> make_evaluator(const BackendOptions&) const override {
        return std::make_unique<PairEvaluator<MorseTerm>>(MorseTerm());
    }

private:
    ModelSummary summary_;
};

}  // namespace

std::shared_ptr<Model> make_analytic_model() { return std::make_shared<AnalyticModel>(); }

}  // namespace mlff
