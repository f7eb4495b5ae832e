// SPDX-License-Identifier: MIT
// Units of dynamics: eV, angstrom, fs, u, K; bar for pressures in input and output.
#pragma once

namespace mlff {

inline constexpr double kBoltzmann = 8.617333262145e-5;        // eV/K
inline constexpr double kAccelerationUnit = 9.64853321233e-3;  // angstrom/fs^2: a force of 1 eV/angstrom on 1 u
inline constexpr double kReducedPlanck = 0.6582119569509067;   // eV fs
inline constexpr double kBar = 1 / 1602176.634;                // eV/angstrom^3
inline constexpr double kGigapascal = 1e4 * kBar;              // eV/angstrom^3

}  // namespace mlff
