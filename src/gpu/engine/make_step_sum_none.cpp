// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "gpu/engine/make_step_sum.h"

namespace mlff::gpu {

MakeStepModel make_step_sum(std::vector<MakeStepModel>) { fail(Status::unsupported, "this build has no CUDA"); }
std::unique_ptr<Evaluator> make_step_sum_evaluator(const BackendOptions&, std::vector<MakeStepModel>) {
    fail(Status::unsupported, "this build has no CUDA");
}

}  // namespace mlff::gpu
