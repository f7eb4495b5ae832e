// SPDX-License-Identifier: MIT
// SevenNet and Nequix on the GPU: the stages of the CPU backend, each as a kernel over all atoms.
#pragma once

#include <memory>
#include <string>

#include "nequip/weights/weights.h"
#include "potential/model.h"

namespace mlff::nequip::gpu {

// Why the GPU backend cannot run the model; "" if it can. In builds without CUDA it never can.
std::string why_not_on_gpu(const Weights& weights);

// Throws Error{unsupported} if why_not_on_gpu() gives a reason. A step with atoms closer than the tables of radial
// functions reach is an Error{system}. `message_scratch_bytes` limits the scratch memory for edges of fused messages;
// 0: a default.
MakeStepModel make_step_model(std::shared_ptr<const Weights> weights, const BackendOptions& options,
                              int64_t message_scratch_bytes = 0);

// The model alone; see gpu/engine/step_evaluator.h.
std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options,
                                              int64_t message_scratch_bytes = 0);

}  // namespace mlff::nequip::gpu
