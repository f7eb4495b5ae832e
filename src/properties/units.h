// SPDX-License-Identifier: MIT
// Units of properties, from eV, angstrom and u. CODATA 2018.
#pragma once

#include <numbers>

namespace mlff {

inline constexpr double kJoulePerElectronvolt = 1.602176634e-19, kKilogramPerU = 1.66053906660e-27,
                        kPlanckJouleSecond = 6.62607015e-34, kLightCentimetrePerSecond = 2.99792458e10;
// What h c is in eV for 1/cm: the energy of a quantum.
inline constexpr double kElectronvoltPerWavenumber =
    kPlanckJouleSecond * kLightCentimetrePerSecond / kJoulePerElectronvolt;
inline constexpr double kPascalPerBar = 1e5;
inline constexpr double kKilojoulePerMole = kJoulePerElectronvolt * 6.02214076e23 / 1e3;  // for 1 eV

}  // namespace mlff
