// SPDX-License-Identifier: MIT
// The ZBL repulsion in steps on the GPU. Builds without CUDA have the same functions, which refuse.
#pragma once

#include <memory>
#include <vector>

#include "potential/model.h"

namespace mlff::zbl::gpu {

bool is_available();
MakeStepModel make_step_model(std::vector<int> elements);
std::unique_ptr<Evaluator> make_gpu_evaluator(std::vector<int> elements, const BackendOptions& options);

}  // namespace mlff::zbl::gpu
