// SPDX-License-Identifier: MIT
// Several models in one step on the GPU: their sum, or the mean of a committee with its spread. The header does not
// need CUDA. In builds without CUDA the functions throw Error{unsupported}.
#pragma once

#include <memory>
#include <vector>

#include "potential/joining.h"
#include "potential/model.h"

namespace mlff::gpu {

// One model made of at least one part; `joinings` [part]. Each part gets the edges within its own cutoff. All parts run
// in the same graph; domains work too. Descriptors are those of the first part. Only means have a spread
// and, of domains, deviations.
MakeStepModel make_combined_step(std::vector<MakeStepModel> parts, std::vector<Joining> joinings);
std::unique_ptr<Evaluator> make_combined_step_evaluator(const BackendOptions& options, std::vector<MakeStepModel> parts,
                                                        std::vector<Joining> joinings);

}  // namespace mlff::gpu
