// SPDX-License-Identifier: MIT
// D3 on the GPU: pairs, in double precision with fp64 and in single precision otherwise. Without CUDA is_available() is
// false, and the other functions throw Error{unsupported}.
#pragma once

#include <memory>

#include "dispersion/tables/tables.h"
#include "potential/model.h"

namespace mlff::dispersion::gpu {

bool is_available();
// `tables` without triples
MakeStepModel make_step_model(std::shared_ptr<const Tables> tables, const BackendOptions& options);
std::unique_ptr<Evaluator> make_gpu_evaluator(std::shared_ptr<const Tables> tables, const BackendOptions& options);

}  // namespace mlff::dispersion::gpu
