// SPDX-License-Identifier: MIT
// The GPU backend of PaiNN: two kernels for each block forward and two back, from positions to forces on the device.
#pragma once

#include <memory>
#include <string>

#include "painn/weights/weights.h"
#include "potential/model.h"

namespace mlff::painn::gpu {

// "" if the GPU backend can run the model, else what it lacks; in builds without CUDA, that.
std::string why_not_on_gpu(const Weights& weights);

// The model as a part of steps. Throws Error{unsupported} if why_not_on_gpu has a reason. Atoms at the same place are
// refused with Error{system}.
MakeStepModel make_step_model(std::shared_ptr<const Weights> weights, const BackendOptions& options);

// The model alone: see gpu/engine/step_evaluator.h.
std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options);

}  // namespace mlff::painn::gpu
