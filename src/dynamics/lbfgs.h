// SPDX-License-Identifier: MIT
// L-BFGS (Nocedal 1980) without line search: one evaluation per step, moves of limited length, and a restart when the
// energy rises.
#pragma once

#include <deque>
#include <vector>

#include "dynamics/minimizer.h"

namespace mlff {

class Lbfgs : public Minimizer {
public:
    void step(std::span<double> variables, double energy, std::span<const double> gradient) override;

private:
    struct Pair {
        std::vector<double> move, change;  // of the variables and of the gradient
        double curvature;                  // their product, > 0
    };
    void remember(std::span<const double> variables, std::span<const double> gradient);

    std::deque<Pair> pairs_;  // oldest first
    std::vector<double> last_variables_, last_gradient_, direction_;
    double last_energy_ = 0;
};

}  // namespace mlff
