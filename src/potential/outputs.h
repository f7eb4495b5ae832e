// SPDX-License-Identifier: MIT
// Where results go. nullptr = not wanted. Arrays are overwritten, not added to.
#pragma once

#include <cstdint>

namespace mlff {

struct Outputs {
    double* energy = nullptr;         // [1], eV
    double* forces = nullptr;         // [atom][3], eV/angstrom
    double* virial = nullptr;         // [3][3] = -dE/dstrain, eV; symmetric
    double* atom_energies = nullptr;  // [atom], eV
    double* atom_virials = nullptr;   // [atom][3][3], eV; their sum is the virial
    double* descriptors = nullptr;    // [atom][descriptor_count of the model]: invariant features of the atom
    // How far the members of a committee are apart: standard deviations. Whole systems have them, alone and in batches.
    double* sigma_energy_per_atom = nullptr;  // [1], eV: of the energy, divided by the number of atoms
    double* sigma_forces = nullptr;           // [atom], eV/angstrom: of the force as a vector
    // The same of domains, whose results are shares: numbers that are shares too, and whose squares, once shares have
    // been added, add up to the variances.
    double* energy_deviations = nullptr;  // [member - 1], eV
    double* force_deviations = nullptr;   // [member - 1][atom][3], eV/angstrom
    // What the trust meter of a model says (trust/meter.h). Of a domain: of its own atoms.
    double* expected_errors = nullptr;  // [atom], eV/angstrom: of the force
    double* novelties = nullptr;  // [atom]: distance from the training atoms; above 1: unlike anything in training

    bool has_trust() const { return expected_errors || novelties; }
    bool has_spread() const { return sigma_energy_per_atom || sigma_forces; }
    bool has_deviations() const { return energy_deviations || force_deviations; }
};

// What the trust meter says of a whole system.
struct TrustReading {
    double max_expected_error = 0;  // eV/angstrom; NaN if that of an atom is
    int64_t outside_count = 0;      // atoms that are outside: see trust/formulas.h
};

// Results that stay on the evaluator's GPU.
struct DeviceOutputs {
    Outputs outputs;           // device pointers
    double* stress = nullptr;  // [6], as in Results
    double volume = 0;         // for the stress
};

}  // namespace mlff
