// SPDX-License-Identifier: MIT
#include "painn/cuda/evaluator.h"

#include "core/error.h"

namespace mlff::painn::cuda {

std::string why_not_on_gpu(const Weights&) { return "this build has no CUDA"; }

std::unique_ptr<Evaluator> make_cuda_evaluator(std::shared_ptr<const Weights> weights, const CudaOptions&) {
    fail(Status::unsupported, "the GPU backend cannot run this model: ", why_not_on_gpu(*weights));
}

}  // namespace mlff::painn::cuda
