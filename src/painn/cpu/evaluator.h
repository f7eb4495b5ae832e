// SPDX-License-Identifier: MIT
// The fast CPU backend of PaiNN: the stages of the reference on tiles of atoms, with dense layers as blocked products
// and filters from tables. Of the options it reads precision and exact_radial.
#pragma once

#include <memory>

#include "painn/weights/weights.h"
#include "potential/backend_options.h"
#include "potential/evaluator.h"

namespace mlff::painn::cpu {

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Weights> weights, const BackendOptions& options);

}  // namespace mlff::painn::cpu
