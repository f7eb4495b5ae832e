// SPDX-License-Identifier: MIT
#include "dynamics/fire.h"

namespace mlff {

void Fire::step(std::span<double> variables, double, std::span<const double> gradient) {
    constexpr double kLongestTimeStep = 1, kStartMixing = 0.1;
    constexpr int kPatience = 5;
    velocities_.resize(variables.size());
    move_.resize(variables.size());
    const double power = -dot_product(gradient, velocities_), slope = std::sqrt(dot_product(gradient, gradient));
    if (power > 0) {
        const double speed = std::sqrt(dot_product(velocities_, velocities_));
        for (size_t i = 0; i < variables.size(); ++i)
            velocities_[i] = (1 - mixing_) * velocities_[i] - mixing_ * speed * gradient[i] / slope;
        if (++downhill_count_ > kPatience) {
            time_step_ = std::min(1.1 * time_step_, kLongestTimeStep);
            mixing_ *= 0.99;
        }
    } else {
        std::fill(velocities_.begin(), velocities_.end(), 0.0);
        time_step_ *= downhill_count_ > 0 ? 0.5 : 1;  // not at the start of a run, which begins at rest
        mixing_ = kStartMixing;
        downhill_count_ = 0;
    }
    for (size_t i = 0; i < variables.size(); ++i) {
        velocities_[i] -= time_step_ * gradient[i];
        move_[i] = time_step_ * velocities_[i];
    }
    const double limit = move_limit(move_);
    for (size_t i = 0; i < variables.size(); ++i) variables[i] += limit * move_[i];
}

}  // namespace mlff
