// SPDX-License-Identifier: MIT
// Nose-Hoover chains (Martyna, Klein and Tuckerman 1992): a friction driven by the excess of the kinetic energy, itself
// under a friction, and so on. Acts for half a step before and after velocity Verlet, with the splitting of Martyna,
// Tuckerman, Tobias and Klein (1996).
//
//   dv_i/dt = F_i/m_i - xi_1 v_i
//   Q_1 dxi_1/dt = 2K - f kT - Q_1 xi_1 xi_2
//   Q_j dxi_j/dt = Q_{j-1} xi_{j-1}^2 - kT - Q_j xi_j xi_{j+1}
//   Q_1 = f kT tau^2, the others kT tau^2; f degrees of freedom.
#pragma once

#include <array>

#include "dynamics/nose_hoover_chain.h"

namespace mlff {

class NoseHoover : public Thermostat {
public:
    NoseHoover(const ThermostatOptions& options, int64_t degrees_of_freedom, double time_step)
        : chain_(options, degrees_of_freedom, time_step) {}
    double begin_step(Particles& particles, int64_t) override { return advance(particles); }
    double end_step(Particles& particles, int64_t) override { return advance(particles); }
    std::span<double> state() override { return state_; }

    double energy() const;  // of the chain, eV; its sum with the energy of the atoms is conserved

private:
    double advance(Particles& particles);

    NoseHooverChain chain_;
    std::array<double, NoseHooverChain::kStateSize> state_{};
};

}  // namespace mlff
