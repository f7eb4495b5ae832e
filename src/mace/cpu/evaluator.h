// SPDX-License-Identifier: MIT
// The fast CPU backend: the same stages as the reference, on rows of channels, with tabulated radial functions.
#pragma once

#include <memory>

#include "mace/weights/weights.h"
#include "potential/evaluator.h"

namespace mlff::mace::cpu {

struct CpuOptions {
    int head = 0;
    bool is_single = false;  // features and messages in float, energies and forces summed in double; else all in double
    bool exact_radial = false;  // evaluate the radial networks for every edge instead of tables
};

// Throws Error{unsupported} if why_not_on_cpu (layer_plan.h) has a reason.
std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Weights> weights, const CpuOptions& options);

}  // namespace mlff::mace::cpu
