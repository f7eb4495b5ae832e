// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "dispersion/gpu/step.h"

namespace mlff::dispersion::gpu {
namespace {

[[noreturn]] void refuse() {
    fail(Status::unsupported, "the dispersion D3 cannot run on a GPU: this build has no CUDA");
}

}  // namespace

bool is_available() { return false; }

MakeStepModel make_step_model(std::shared_ptr<const Tables>, const BackendOptions&) { refuse(); }

std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Tables>, const BackendOptions&) { refuse(); }

}  // namespace mlff::dispersion::gpu
