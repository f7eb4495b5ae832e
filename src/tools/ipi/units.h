// SPDX-License-Identifier: MIT
// i-PI talks in atomic units; CODATA 2018, as i-PI and ASE have them within 1e-9.
#pragma once

namespace mlff::ipi {

constexpr double kBohr = 0.529177210903;         // angstrom
constexpr double kHartree = 27.211386245988;     // eV
constexpr double kForceUnit = kHartree / kBohr;  // eV/angstrom

}  // namespace mlff::ipi
