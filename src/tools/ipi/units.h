// SPDX-License-Identifier: MIT
// Atomic units, as used by i-PI: CODATA 2018. They agree with those of i-PI and ASE within 1e-9.
#pragma once

namespace mlff::ipi {

constexpr double kBohr = 0.529177210903;         // angstrom
constexpr double kHartree = 27.211386245988;     // eV
constexpr double kForceUnit = kHartree / kBohr;  // eV/angstrom

}  // namespace mlff::ipi
