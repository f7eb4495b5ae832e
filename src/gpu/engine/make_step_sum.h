// SPDX-License-Identifier: MIT
// The sum of several models in one step on the GPU. The header does not need CUDA. In builds without CUDA the functions
// throw Error{unsupported}.
#pragma once

#include <memory>
#include <vector>

#include "potential/model.h"

namespace mlff::gpu {

// One model made of at least one term. Each term gets the edges within its own cutoff. All terms run in the same graph;
// domains work too. Descriptors are those of the first term.
MakeStepModel make_step_sum(std::vector<MakeStepModel> terms);
std::unique_ptr<Evaluator> make_step_sum_evaluator(const BackendOptions& options, std::vector<MakeStepModel> terms);

}  // namespace mlff::gpu
