// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "nequip/gpu/evaluator.h"

namespace mlff::nequip::gpu {

std::string why_not_on_gpu(const Weights&) { return "this build has no CUDA"; }

MakeStepModel make_step_model(std::shared_ptr<const Weights> weights, const BackendOptions&, int64_t) {
    fail(Status::unsupported, "the GPU backend cannot run this model: ", why_not_on_gpu(*weights));
}

std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions&, int64_t) {
    fail(Status::unsupported, "the GPU backend cannot run this model: ", why_not_on_gpu(*weights));
}

}  // namespace mlff::nequip::gpu
