// SPDX-License-Identifier: MIT
// The units in which the numbers of DFT-D3 are published (CODATA 2018), and the distances up to which atoms count.
#pragma once

#include <cmath>

namespace mlff::dispersion {

inline constexpr double kBohr = 0.529177210903;      // angstrom
inline constexpr double kHartree = 27.211386245988;  // eV
inline constexpr double kPairCutoff = 60 * kBohr;    // angstrom
inline constexpr double kTripleCutoff = 40 * kBohr;  // of each of the three distances
inline constexpr double kCountCutoff = 40 * kBohr;   // of neighbours in coordination numbers
inline constexpr double kFadeWidth = 4 * kBohr;      // where energies go to zero before a cutoff, with `smooth`
inline constexpr double kLeastSquare = 1e-12;        // angstrom^2; atoms nearer than that are at the same place

// C9 is the square root of three C6 where energies are in hartree. For C6 in eV it takes this factor.
inline const double kTripleStrength = 1 / std::sqrt(kHartree);

}  // namespace mlff::dispersion
