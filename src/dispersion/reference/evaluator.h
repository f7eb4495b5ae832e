// SPDX-License-Identifier: MIT
// DFT-D3 as plain double-precision loops over lists of all neighbours: the oracle of the fast evaluators.
//
//   1. coordination numbers n_i = sum of counts
//   2. weights of references w_ip(n_i), and C6_ij = sum over p, q of w_ip C6_pq w_jq
//   3. energies of pairs and triples with their derivatives by distance and by coordination number
//   4. the derivatives by coordination number become forces
#pragma once

#include <memory>

#include "dispersion/tables/tables.h"
#include "potential/evaluator.h"

namespace mlff::dispersion::reference {

std::unique_ptr<Evaluator> make_reference_evaluator(std::shared_ptr<const Tables> tables);

}  // namespace mlff::dispersion::reference
