// SPDX-License-Identifier: MIT
// Tests whether a model can be trusted in dynamics: relaxation, NVT and NVE for each system, then all checks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "tools/report/svg_plot.h"
#include "tools/validate/check.h"
#include "tools/validate/energy_check.h"
#include "tools/validate/force_check.h"
#include "tools/validate/systems.h"
#include "tools/validate/thresholds.h"
#include "tools/validate/trajectory.h"

namespace mlff::validate {

struct Settings {
    int64_t step_count = 10'000;  // of the run without a thermostat; the run in a bath has half as many
    double time_step = 0.5;       // fs
    double temperature = 300;     // K
    Thresholds thresholds;
};

// `model` is under test, `reference` is the same model in plain double precision, `against` another model or nullptr.
struct Sessions {
    Session& model;
    Session& reference;
    Session* against = nullptr;
};

using report::Curve;

struct VerdictCounts {
    size_t passed = 0, failed = 0, undecided = 0;
    int64_t deciding_steps = 0;  // the approximate `--steps` that would decide all checks

    void add(const Check& check);
    void add(const VerdictCounts& others);
};

struct SystemReport {
    std::string name, formula;
    size_t atom_count = 0;
    bool is_periodic = false;
    std::optional<BlowUp> blow_up;
    std::vector<Check> checks;  // empty if the relaxation failed
    std::optional<EnergyDrift> drift;
    std::optional<ForceComparison> path, against;  // the model compared with its reference, and with the other model

    // For plots, reduced to a few hundred points.
    Curve energy;                     // ps, meV/atom since the start of NVE
    std::vector<Curve> temperatures;  // ps, K
    std::vector<Curve> distances;     // A, g(r) or pairs/A

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

// Called with the current phase and the completed part of this system, 0 to 1. May be empty.
using OnProgress = std::function<void(const std::string& phase, double part)>;

// Throws Error for a system that the models cannot evaluate, and names it. An unstable run is a finding.
SystemReport validate_system(const Sessions& sessions, const TestSystem& system, const Settings& settings,
                             const OnProgress& on_progress);

}  // namespace mlff::validate
