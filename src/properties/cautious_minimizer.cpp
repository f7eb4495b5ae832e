// SPDX-License-Identifier: MIT
#include "properties/cautious_minimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mlff {

void CautiousMinimizer::forget() {
    minimizer_.reset();
    last_norm_ = 0;
}

void CautiousMinimizer::step(std::span<double> variables, std::span<const double> gradient, double longest_move) {
    constexpr double kGrowth = 1.5, kShortestReach = 1e-4, kLongestReach = 0.1;  // the last two: angstrom
    const double norm = std::sqrt(dot_product(gradient, gradient));
    if (last_norm_ > 0 && norm > kGrowth * last_norm_) {
        minimizer_.reset();
        reach_ = std::max(0.5 * reach_, kShortestReach);
    } else {
        reach_ = std::min(1.2 * reach_, kLongestReach);
    }
    last_norm_ = norm;
    if (!minimizer_) minimizer_ = std::make_unique<Lbfgs>();
    std::vector<double> moved(variables.begin(), variables.end());
    minimizer_->step(moved, 0, gradient);
    double longest = 0;
    for (size_t i = 0; i < moved.size(); ++i) moved[i] -= variables[i];
    for (size_t i = 0; i + 2 < moved.size(); i += 3)
        longest = std::max(longest, std::hypot(moved[i], moved[i + 1], moved[i + 2]));
    const double limit = std::min(reach_, longest_move), scale = longest > limit ? limit / longest : 1;
    for (size_t i = 0; i < moved.size(); ++i) variables[i] += scale * moved[i];
}

}  // namespace mlff
