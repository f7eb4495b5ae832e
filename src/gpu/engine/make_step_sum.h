// SPDX-License-Identifier: MIT
// The sum of several models in one step on the GPU. Knows nothing of CUDA; builds without it refuse.
#pragma once

#include <memory>
#include <vector>

#include "potential/model.h"

namespace mlff::gpu {

// One model made of several, at least one. Each gets the edges within its own cutoff; all in the same graph, and in
// domains. Descriptors are those of the first.
MakeStepModel make_step_sum(std::vector<MakeStepModel> terms);
std::unique_ptr<Evaluator> make_step_sum_evaluator(const BackendOptions& options, std::vector<MakeStepModel> terms);

}  // namespace mlff::gpu
