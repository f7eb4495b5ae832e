// SPDX-License-Identifier: MIT
#include "dynamics/nose_hoover.h"

namespace mlff {

double NoseHoover::advance(Particles& particles) {
    const double kinetic = particles.kinetic_energy(), scale = chain_.advance(state_.data(), kinetic);
    for (double& v : particles.velocities) v *= scale;
    return (scale * scale - 1) * kinetic;
}

double NoseHoover::energy() const {
    double sum = 0;
    for (size_t j = 0; j < NoseHooverChain::kLength; ++j) {
        const double position = state_[j], rate = state_[NoseHooverChain::kLength + j];
        sum += 0.5 * chain_.inertia[j] * rate * rate + (j == 0 ? chain_.degrees : 1) * chain_.thermal_energy * position;
    }
    return sum;
}

}  // namespace mlff
