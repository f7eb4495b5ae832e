// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "dispersion/gpu/step.h"

namespace mlff::dispersion::gpu {

bool is_available() { return false; }

MakeStepModel make_step_model(Tables, const BackendOptions&) {
    fail(Status::unsupported, "this library was built without CUDA");
}

std::unique_ptr<Evaluator> make_gpu_evaluator(Tables, const BackendOptions&) {
    fail(Status::unsupported, "this library was built without CUDA");
}

}  // namespace mlff::dispersion::gpu
