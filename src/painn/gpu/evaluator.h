// SPDX-License-Identifier: MIT
// PaiNN on the GPU: each block is two kernels forward and two in reverse.
#pragma once

#include <memory>
#include <string>

#include "painn/weights/weights.h"
#include "potential/model.h"

namespace mlff::painn::gpu {

// Why the GPU backend cannot run the model; "" if it can. In builds without CUDA it never can.
std::string why_not_on_gpu(const Weights& weights);

// Throws Error{unsupported} if why_not_on_gpu() gives a reason. A step with two atoms at the same place is an
// Error{system}.
MakeStepModel make_step_model(std::shared_ptr<const Weights> weights, const BackendOptions& options);

// The model alone; see gpu/engine/step_evaluator.h.
std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options);

}  // namespace mlff::painn::gpu
