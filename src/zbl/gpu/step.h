// SPDX-License-Identifier: MIT
// The ZBL repulsion on the GPU. Without CUDA is_available() is false, and the other functions throw Error{unsupported}.
#pragma once

#include <memory>
#include <vector>

#include "potential/model.h"

namespace mlff::zbl::gpu {

bool is_available();
MakeStepModel make_step_model(std::vector<int> elements);
std::unique_ptr<Evaluator> make_gpu_evaluator(std::vector<int> elements, const BackendOptions& options);

}  // namespace mlff::zbl::gpu
