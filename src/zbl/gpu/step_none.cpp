// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "zbl/gpu/step.h"

namespace mlff::zbl::gpu {
namespace {

[[noreturn]] void refuse() {
    fail(Status::unsupported, "the ZBL repulsion cannot run on a GPU: this build has no CUDA");
}

}  // namespace

bool is_available() { return false; }
MakeStepModel make_step_model(std::vector<int>) { refuse(); }
std::unique_ptr<Evaluator> make_gpu_evaluator(std::vector<int>, const BackendOptions&) { refuse(); }

}  // namespace mlff::zbl::gpu
