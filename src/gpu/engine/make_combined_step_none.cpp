// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "gpu/engine/make_combined_step.h"

namespace mlff::gpu {

MakeStepModel make_combined_step(std::vector<MakeStepModel>, std::vector<Joining>) {
    fail(Status::unsupported, "this build has no CUDA");
}
std::unique_ptr<Evaluator> make_combined_step_evaluator(const BackendOptions&, std::vector<MakeStepModel>,
                                                        std::vector<Joining>) {
    fail(Status::unsupported, "this build has no CUDA");
}

}  // namespace mlff::gpu
