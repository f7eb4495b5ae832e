// SPDX-License-Identifier: MIT
// Constant pressure by stochastic cell rescaling: isotropic (Bernetti and Bussi 2020) or of the full cell (Del Tatto,
// Raiteri, Bernetti and Bussi 2022).
//
//   cell, positions -> F cell, F positions;  velocities -> F^-1 velocities;  F = exp(M)
//   isotropic: M = (d/3) 1,  d = b/t (P - P0) h + sqrt(2 kT b h / (V t)) R,  the change of ln V
//   full cell: M_ij = b/(3 t) (P_ij - P0 delta_ij) h + sqrt(2 kT b h / (3 V t)) (R_ij + R_ji)/2
//
// b: compressibility, t: relaxation time, h: time between two calls, R: normal random numbers, P: instantaneous
// pressure. M is symmetric, so the cell does not rotate. With the symmetric noise of the full cell, the terms kT/V of
// Ito's calculus cancel in the exponent; its trace is the isotropic equation.
#pragma once

#include <cstdint>

#include "dynamics/particles.h"

namespace mlff {

struct BarostatOptions {
    double pressure = 1;               // bar
    double relaxation_time = 1000;     // fs
    double compressibility = 4.57e-5;  // 1/bar, that of water; an error changes the rate, not the equilibrium pressure
    bool full_cell = false;            // otherwise the shape is kept
    int64_t every = 10;                // steps
};

Mat3 kinetic_tensor(const Particles& particles);  // sum of m v v, u angstrom^2/fs^2
// (kinetic tensor + virial) / volume, eV/angstrom^3
Mat3 pressure_tensor(const Mat3& kinetic, const Mat3& virial, const Mat3& cell);

class CellRescaling {
public:
    // Throws Error{argument} for invalid options, and Error{system} unless all directions are periodic and all atoms
    // are free to move.
    CellRescaling(const BarostatOptions& options, const Particles& particles, double temperature, uint64_t seed,
                  double time_step);

    bool acts_at(int64_t step) const { return step % options_.every == 0; }
    // F of step `step`. Throws Error{system} if the cell would change by more than a tenth in one step.
    Mat3 deformation(const Mat3& pressure, const Mat3& cell, int64_t step) const;
    void rescale(Particles& particles, const Mat3& virial, int64_t step) const;

private:
    BarostatOptions options_;
    double thermal_energy_, interval_;
    uint64_t seed_;
};

}  // namespace mlff
