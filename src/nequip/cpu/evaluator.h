// SPDX-License-Identifier: MIT
// The fast CPU backend: the stages of the reference, vectorised over channels, with tabulated radial functions. Of the
// options it reads precision and exact_radial.
#pragma once

#include <memory>

#include "nequip/weights/weights.h"
#include "potential/backend_options.h"
#include "potential/evaluator.h"

namespace mlff::nequip::cpu {

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options);

}  // namespace mlff::nequip::cpu
