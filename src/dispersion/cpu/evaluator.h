// SPDX-License-Identifier: MIT
// DFT-D3, fast on the CPU. Each own atom gathers from all atoms within the cutoffs: pairs are computed from both ends,
// so that no thread writes what belongs to another atom. Images of a periodic system are ghosts, as in a domain.
#pragma once

#include <memory>

#include "dispersion/tables/tables.h"
#include "potential/evaluator.h"

namespace mlff::dispersion::cpu {

std::unique_ptr<Evaluator> make_cpu_evaluator(std::shared_ptr<const Tables> tables);

}  // namespace mlff::dispersion::cpu
