// SPDX-License-Identifier: MIT
// Units of dynamics: eV, angstrom, fs, u and K.
#pragma once

namespace mlff {

inline constexpr double kBoltzmann = 8.617333262145e-5;          // eV/K
inline constexpr double kAccelerationUnit = 9.64853321233e-3;    // angstrom/fs^2: a force of 1 eV/angstrom on 1 u

}  // namespace mlff
