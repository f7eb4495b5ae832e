// SPDX-License-Identifier: MIT
// The sum of several evaluators on the CPU: one list of neighbours for the longest cutoff, of which each term gets the
// edges within its own, and results that are added up.
#pragma once

#include <memory>
#include <vector>

#include "potential/evaluator.h"

namespace mlff {

struct SumTerm {
    std::unique_ptr<Evaluator> evaluator;
    double cutoff = 0;  // angstrom
};

// `terms`: at least one, all of which read edges. `cutoff`: that of the edges that the sum is given. Descriptors are
// those of the first term. Batches and domains work where all terms have them.
std::unique_ptr<Evaluator> make_sum_evaluator(std::vector<SumTerm> terms, double cutoff);

}  // namespace mlff
