// SPDX-License-Identifier: MIT
#include "dynamics/nose_hoover.h"

#include <cmath>

#include "dynamics/units.h"

namespace mlff {

NoseHoover::NoseHoover(const ThermostatOptions& options, int64_t degrees_of_freedom, double time_step)
    : thermal_energy_(kBoltzmann * options.temperature), degrees_(static_cast<double>(degrees_of_freedom)), half_step_(0.5 * time_step) {
    inertia_.fill(thermal_energy_ * options.relaxation_time * options.relaxation_time);
    inertia_[0] *= degrees_;
}

double NoseHoover::advance(Particles& particles) {
    if (degrees_ == 0) return 0;
    double* position = state_.data();
    double* rate = state_.data() + kLength;
    const double kinetic = particles.kinetic_energy();
    double doubled_kinetic = 2 * kinetic, scale = 1;
    const auto push = [&](size_t j, double time) {
        const double excess = j == 0 ? doubled_kinetic - degrees_ * thermal_energy_ : inertia_[j - 1] * rate[j - 1] * rate[j - 1] - thermal_energy_;
        const double slowed = j + 1 < kLength ? std::exp(-0.25 * time * rate[j + 1]) : 1;
        rate[j] = (rate[j] * slowed + 0.5 * time * excess / inertia_[j]) * slowed;
    };
    const double outer = 1 / (2 - std::cbrt(2.0));  // Yoshida's weights of fourth order
    for (const double weight : {outer, 1 - 2 * outer, outer}) {
        const double time = weight * half_step_;
        for (size_t j = kLength; j-- > 0;) push(j, time);
        const double factor = std::exp(-time * rate[0]);
        scale *= factor;
        doubled_kinetic *= factor * factor;
        for (size_t j = 0; j < kLength; ++j) position[j] += time * rate[j];
        for (size_t j = 0; j < kLength; ++j) push(j, time);
    }
    for (double& v : particles.velocities) v *= scale;
    return (scale * scale - 1) * kinetic;
}

double NoseHoover::energy() const {
    double sum = 0;
    for (size_t j = 0; j < kLength; ++j)
        sum += 0.5 * inertia_[j] * state_[kLength + j] * state_[kLength + j] + (j == 0 ? degrees_ : 1) * thermal_energy_ * state_[j];
    return sum;
}

}  // namespace mlff
