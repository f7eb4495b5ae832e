// SPDX-License-Identifier: MIT
// The GPU backend: the stages of the CPU backend, each a kernel over all atoms, from positions to forces on the device.
#pragma once

#include <memory>
#include <string>

#include "mace/weights/weights.h"
#include "potential/model.h"

namespace mlff::mace::gpu {

// "" if the GPU backend has all that the model needs, else what it lacks; in builds without CUDA, that.
std::string why_not_on_gpu(const Weights& weights);

// The model as a part of steps. Throws Error{unsupported} if why_not_on_gpu has a reason. Systems with atoms so close
// that tables of radial functions do not reach are refused with Error{system}. `message_scratch_bytes`: the most for
// edges whose messages are being made; 0: what is sensible.
MakeStepModel make_step_model(std::shared_ptr<const Weights> weights, const BackendOptions& options,
                              int64_t message_scratch_bytes = 0);

// The model alone: see gpu/engine/step_evaluator.h.
std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options,
                                              int64_t message_scratch_bytes = 0);

}  // namespace mlff::mace::gpu
