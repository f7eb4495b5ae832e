// SPDX-License-Identifier: MIT
// Equations of state: the energy of a crystal as a function of its volume.
//
// With x = (V0/V)^(2/3) and y = (V/V0)^(1/3):
//   Birch and Murnaghan, third order:  E = E0 + 9/16 V0 B0 (x - 1)^2 (6 - 4 x + B0' (x - 1))
//   Vinet:  E = E0 + 9 V0 B0 / eta^2 (1 - (1 + t) exp(-t)),  eta = 3/2 (B0' - 1),  t = eta (y - 1)
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dynamics/relaxation.h"
#include "engine/session.h"

namespace mlff {

enum class EnergyForm { birch_murnaghan, vinet };

struct EquationOfState {
    double energy = 0;              // E0, eV
    double volume = 0;              // V0, angstrom^3
    double bulk_modulus = 0;        // B0, eV/angstrom^3
    double bulk_modulus_slope = 0;  // B0', its derivative by the pressure
};

double energy_at(EnergyForm form, const EquationOfState& equation, double volume);

struct FittedEquation {
    EquationOfState equation;
    double rms_residual = 0;  // eV
};

// By nonlinear least squares. Throws Error{argument} for fewer than kLeastVolumes points, and Error{system} for numbers
// that are not finite, volumes that are not positive and ascending, energies that are not convex in the volume, and a
// minimum that is not between the first and the last volume.
FittedEquation fit_equation(EnergyForm form, std::span<const double> volumes, std::span<const double> energies);

inline constexpr size_t kLeastVolumes = 5;  // one more than there are parameters

struct EnergyCurveOptions {
    int64_t volume_count = 11;
    double range = 0.06;  // volumes differ from that of the crystal by up to this part
    bool relaxes_positions = true;
    bool relaxes_shape = false;    // of the cell, at constant volume; then the positions relax too
    double largest_force = 1e-4;   // eV/angstrom
    double largest_stress = 1e-5;  // eV/angstrom^3, of the shape
    int64_t step_limit = 1000;     // for each volume
};

struct EnergyCurve {
    std::vector<double> volumes, energies;  // angstrom^3, ascending; eV
    std::vector<double> largest_forces;     // eV/angstrom
    std::vector<int64_t> moves;
    std::optional<FittedEquation> fit;
    std::string problem;  // why there is no fit: a relaxation that did not converge, or what fit_equation() says
};

// Energies at volumes that differ by equal steps, all relaxed as one batch, and the fit. Throws Error{argument} for
// options and Error{system} for a crystal that cannot be used.
EnergyCurve compute_energy_curve(Session& session, const Particles& crystal, EnergyForm form,
                                 const EnergyCurveOptions& options);

}  // namespace mlff
