// SPDX-License-Identifier: MIT
#include "dynamics/lbfgs.h"

namespace mlff {

void Lbfgs::remember(std::span<const double> variables, std::span<const double> gradient) {
    constexpr size_t kMemory = 20;
    Pair pair;
    for (size_t i = 0; i < variables.size(); ++i) {
        pair.move.push_back(variables[i] - last_variables_[i]);
        pair.change.push_back(gradient[i] - last_gradient_[i]);
    }
    pair.curvature = dot_product(pair.move, pair.change);
    if (!(pair.curvature > 1e-12 * dot_product(pair.change, pair.change))) return;  // no minimum in this direction
    pairs_.push_back(std::move(pair));
    if (pairs_.size() > kMemory) pairs_.pop_front();
}

void Lbfgs::step(std::span<double> variables, double energy, std::span<const double> gradient) {
    constexpr double kInverseStiffness = 1.0 / 70;  // angstrom^2/eV, about that of a bond
    if (!last_variables_.empty()) {
        if (energy > last_energy_ + 1e-6)
            pairs_.clear();
        else
            remember(variables, gradient);
    }
    direction_.assign(gradient.begin(), gradient.end());
    std::vector<double> weights(pairs_.size());
    for (size_t k = pairs_.size(); k-- > 0;) {
        weights[k] = dot_product(pairs_[k].move, direction_) / pairs_[k].curvature;
        for (size_t i = 0; i < direction_.size(); ++i) direction_[i] -= weights[k] * pairs_[k].change[i];
    }
    for (double& d : direction_) d *= kInverseStiffness;
    for (size_t k = 0; k < pairs_.size(); ++k) {
        const double weight = weights[k] - dot_product(pairs_[k].change, direction_) / pairs_[k].curvature;
        for (size_t i = 0; i < direction_.size(); ++i) direction_[i] += weight * pairs_[k].move[i];
    }
    last_variables_.assign(variables.begin(), variables.end());
    last_gradient_.assign(gradient.begin(), gradient.end());
    last_energy_ = energy;
    const double limit = move_limit(direction_);
    for (size_t i = 0; i < variables.size(); ++i) variables[i] -= limit * direction_[i];
}

}  // namespace mlff
