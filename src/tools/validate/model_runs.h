// SPDX-License-Identifier: MIT
// The runs that a model goes through on one system: relaxation, NVT, NVE with half the time step, NVE. Starts and
// random numbers are fixed, so that two models can be compared.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/session.h"
#include "tools/validate/trajectory.h"

namespace mlff::validate {

struct ModelRunOptions {
    int64_t step_count = 10'000;  // of the run without a thermostat; the run in a bath has half as many
    double time_step = 0.5;       // fs
    double temperature = 300;     // K
};

// A run with an empty phase was not started, because an earlier one broke.
struct ModelRuns {
    Run bath, fine, free;  // snapshots of `bath`: without the equilibration
    std::optional<BlowUp> blow_up;

    bool has_bath() const { return !bath.phase.empty() && !bath.blow_up; }  // from start to end
    bool has_free() const { return !free.phase.empty() && !free.blow_up; }
};

// Called with the current phase and the completed part of the runs, 0 to 1. May be empty.
using OnProgress = std::function<void(const std::string& phase, double part)>;

ModelRuns run_model(Session& session, const Particles& start, const ModelRunOptions& options,
                    const OnProgress& on_progress);

}  // namespace mlff::validate
