// SPDX-License-Identifier: MIT
// Energies and entropies of molecules at a temperature: harmonic vibrations, a rigid rotor, an ideal gas.
#pragma once

#include <span>

namespace mlff {

// Harmonic vibrations; imaginary modes (negative frequencies) are left out.
struct VibrationalEnergy {
    double zero_point_energy = 0;  // eV
    double internal_energy = 0;    // eV, with the zero-point energy
    double entropy = 0;            // eV/K
    double heat_capacity = 0;      // eV/K
};
VibrationalEnergy vibrational_energy(std::span<const double> frequencies, double temperature);  // 1/cm, K

struct IdealGas {
    std::span<const double> frequencies;  // 1/cm
    std::span<const double> masses;       // [atom], u
    std::span<const double> positions;    // [atom][3], angstrom
    bool is_linear = false;
    int symmetry_number = 1;
    double spin_multiplicity = 1;
};

// To be added to the energy of the structure at rest.
struct Thermochemistry {
    VibrationalEnergy vibrations;
    double internal_energy = 0;                                                        // eV: U
    double enthalpy = 0;                                                               // eV: H = U + k T
    double translational_entropy = 0, rotational_entropy = 0, electronic_entropy = 0;  // eV/K
    double entropy = 0;                                                                // eV/K: S
    double heat_capacity = 0;                                                          // eV/K, at constant pressure
    double gibbs_energy = 0;                                                           // eV: G = H - T S
};
Thermochemistry thermochemistry_of(const IdealGas& gas, double temperature, double pressure);  // K, bar

}  // namespace mlff
