// SPDX-License-Identifier: MIT
// What the runs of a model show: checks, and curves for plots.
#pragma once

#include <optional>
#include <vector>

#include "tools/report/svg_plot.h"
#include "tools/validate/check.h"
#include "tools/validate/energy_check.h"
#include "tools/validate/fastest_vibration.h"
#include "tools/validate/model_runs.h"
#include "tools/validate/thresholds.h"

namespace mlff::validate {

using report::Curve;

struct Findings {
    std::optional<BlowUp> blow_up;
    std::vector<Check> checks;  // empty if the relaxation failed
    std::optional<EnergyDrift> drift;
    std::optional<FastestVibration> fastest;  // in NVT

    // For plots, reduced to a few hundred points.
    Curve energy;                       // ps, meV/atom since the start of NVE
    std::vector<Curve> temperatures;    // ps, K
    std::vector<Curve> distances;       // A, g(r) or pairs/A; in NVE, or in NVT if that is all there is
    std::vector<Curve> bath_distances;  // the same in NVT
};

// `start` is the structure as given, `temperature` that of the bath.
Findings findings_of(const ModelRuns& runs, const Particles& start, double temperature, const Thresholds& thresholds);

}  // namespace mlff::validate
