// SPDX-License-Identifier: MIT
// The sum of several evaluators on the CPU. There is one neighbour list, for the longest cutoff; each term gets the
// edges within its own cutoff, and the results are added.
#pragma once

#include <memory>
#include <vector>

#include "potential/evaluator.h"

namespace mlff {

struct SumTerm {
    std::unique_ptr<Evaluator> evaluator;
    double cutoff = 0;  // angstrom
};

// `terms`: at least one; all must read edges. `cutoff`: that of the edges that evaluate() gets. Descriptors are those
// of the first term. The sum can evaluate batches and domains if all terms can.
std::unique_ptr<Evaluator> make_sum_evaluator(std::vector<SumTerm> terms, double cutoff);

}  // namespace mlff
