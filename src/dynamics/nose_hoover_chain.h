// SPDX-License-Identifier: MIT
// The chain variables of nose_hoover.h. CPU and GPU use the same code.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/host_device.h"
#include "dynamics/thermostat.h"
#include "dynamics/units.h"

namespace mlff {

struct NoseHooverChain {
    static constexpr int kLength = 3, kStateSize = 2 * kLength;

    double thermal_energy = 0;  // kT
    double degrees = 0;
    double half_step = 0;          // fs
    double inertia[kLength] = {};  // Q, eV fs^2

    NoseHooverChain() = default;
    NoseHooverChain(const ThermostatOptions& options, int64_t degrees_of_freedom, double time_step)
        : thermal_energy(kBoltzmann * options.temperature),
          degrees(static_cast<double>(degrees_of_freedom)),
          half_step(0.5 * time_step) {
        for (double& q : inertia) q = thermal_energy * options.relaxation_time * options.relaxation_time;
        inertia[0] *= degrees;
    }

    // Advances `state` by half a step: positions of the chain, then its rates xi, 1/fs. Returns the factor for the
    // velocities; `kinetic` is their energy, eV.
    MLFF_HOST_DEVICE double advance(double* state, double kinetic) const {
        if (degrees == 0) return 1;
        double* position = state;
        double* rate = state + kLength;
        double doubled_kinetic = 2 * kinetic, scale = 1;
        const auto push = [&](int j, double time) {
            const double excess = j == 0 ? doubled_kinetic - degrees * thermal_energy
                                         : inertia[j - 1] * rate[j - 1] * rate[j - 1] - thermal_energy;
            const double slowed = j + 1 < kLength ? std::exp(-0.25 * time * rate[j + 1]) : 1;
            rate[j] = (rate[j] * slowed + 0.5 * time * excess / inertia[j]) * slowed;
        };
        const double outer = 1 / (2 - std::cbrt(2.0));  // Yoshida's fourth-order weights
        const double weights[3] = {outer, 1 - 2 * outer, outer};
        for (const double weight : weights) {
            const double time = weight * half_step;
            for (int j = kLength; j-- > 0;) push(j, time);
            const double factor = std::exp(-time * rate[0]);
            scale *= factor;
            doubled_kinetic *= factor * factor;
            for (int j = 0; j < kLength; ++j) position[j] += time * rate[j];
            for (int j = 0; j < kLength; ++j) push(j, time);
        }
        return scale;
    }
};

}  // namespace mlff
