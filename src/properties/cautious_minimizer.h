// SPDX-License-Identifier: MIT
// L-BFGS for forces that are the gradient of no energy, such as those of bands and dimers. There is no energy to tell
// whether a move was too long; that the forces grew has to do.
#pragma once

#include <memory>
#include <span>

#include "dynamics/lbfgs.h"

namespace mlff {

class CautiousMinimizer {
public:
    // No group of three variables moves farther than `longest_move`.
    void step(std::span<double> variables, std::span<const double> gradient, double longest_move);
    // The forces from now on are others: nothing that was learned is of use.
    void forget();

private:
    std::unique_ptr<Lbfgs> minimizer_;
    double last_norm_ = 0, reach_ = 0.05;  // angstrom
};

}  // namespace mlff
