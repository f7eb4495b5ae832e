// SPDX-License-Identifier: MIT
// FIRE (Bitzek, Koskinen, Gahler, Moseler and Gumbsch 2006): dynamics whose velocities are turned towards the force,
// and stopped when they go uphill.
#pragma once

#include <vector>

#include "dynamics/minimizer.h"

namespace mlff {

class Fire : public Minimizer {
public:
    void step(std::span<double> variables, double energy, std::span<const double> gradient) override;

private:
    std::vector<double> velocities_, move_;
    double time_step_ = 0.1, mixing_ = 0.1;
    int downhill_count_ = 0;
};

}  // namespace mlff
