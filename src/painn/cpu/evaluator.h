// SPDX-License-Identifier: MIT
// The fast CPU backend of PaiNN: the stages of the reference on tiles of atoms, dense layers as blocked products,
// filters from tables.
#pragma once

#include <memory>

#include "painn/weights/weights.h"
#include "potential/evaluator.h"

namespace mlff::painn::cpu {

struct CpuOptions {
    bool is_mixed =
        false;  // features and messages in float, positions, energies and forces in double; else all in double
    bool exact_radial = false;  // filters evaluated for every edge instead of tables
};

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Weights> weights, const CpuOptions& options);

}  // namespace mlff::painn::cpu
