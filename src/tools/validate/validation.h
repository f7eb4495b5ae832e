// SPDX-License-Identifier: MIT
// Tests whether a model can be trusted in dynamics: relaxation, NVT and NVE for each system, then all checks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "tools/validate/check.h"
#include "tools/validate/findings.h"
#include "tools/validate/force_check.h"
#include "tools/validate/model_runs.h"
#include "tools/validate/pair_difference.h"
#include "tools/validate/systems.h"
#include "tools/validate/thresholds.h"

namespace mlff::validate {

struct Settings : ModelRunOptions {
    int64_t against_step_count = 10'000;  // of the other model; 0 = it does not run, and only forces are compared
    Thresholds thresholds;
};

// `model` is under test, `reference` is the same model in plain double precision, `against` another model or nullptr.
struct Sessions {
    Session& model;
    Session& reference;
    Session* against = nullptr;
};

struct VerdictCounts {
    size_t passed = 0, failed = 0, undecided = 0;
    int64_t deciding_steps = 0;  // the approximate `--steps` that would decide all checks

    void add(const Check& check);
    void add(const VerdictCounts& others);
};

// What dynamics with the other model showed, and how far the pair distances of the two models in the bath are apart.
// Its checks are no checks of the model under test.
struct OtherDynamics {
    int64_t step_count = 0;
    Findings findings;
    std::vector<PairDifference> pair_differences;  // empty if one of the models broke in the bath
};

// The findings of the model under test, and comparisons with others.
struct SystemReport : Findings {
    std::string name, formula;
    size_t atom_count = 0;
    bool is_periodic = false;
    std::optional<ForceComparison> path, against;  // the model compared with its reference, and with the other model
    std::optional<OtherDynamics> other;

    VerdictCounts counts() const;
    bool is_passed() const;  // nothing failed; checks may be undecided
};

struct Report {
    std::string model, device, precision;
    std::string against;  // "" = none
    Settings settings;
    std::vector<SystemReport> systems;

    VerdictCounts counts() const;
    bool is_passed() const;  // at least one system, and all of them pass
};

// `on_progress` is called for the runs of the other model, whose phases begin with "other model, ", then for those of
// the model under test. Throws Error for a system that the models cannot evaluate, and names it. An unstable run is a
// finding.
SystemReport validate_system(const Sessions& sessions, const TestSystem& system, const Settings& settings,
                             const OnProgress& on_progress);

}  // namespace mlff::validate
