// SPDX-License-Identifier: MIT
// Several evaluators as one, on the CPU. There is one neighbour list, for the longest cutoff; each part gets the edges
// within its own cutoff.
#pragma once

#include <memory>
#include <vector>

#include "potential/evaluator.h"
#include "potential/joining.h"

namespace mlff {

struct CombinedPart {
    std::unique_ptr<Evaluator> evaluator;
    double cutoff = 0;  // angstrom; 0: it finds its neighbours itself
};

// At least one part; `joinings` [part]. The edges that it gets are those within the longest cutoff. Descriptors are
// those of the first part. Batches and domains can be evaluated if all parts can. A mean has a spread too; domains,
// whose forces are shares, have deviations.
std::unique_ptr<Evaluator> make_combined_evaluator(std::vector<CombinedPart> parts, std::vector<Joining> joinings);

}  // namespace mlff
