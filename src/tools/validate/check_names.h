// SPDX-License-Identifier: MIT
// The names of the checks. Reports show them, and recommendations find checks by them.
#pragma once

namespace mlff::validate {

inline constexpr const char* kDriftCheck = "energy drift";
inline constexpr const char* kDriftOverRunCheck = "energy drift over the run";
inline constexpr const char* kOrderCheck = "order of the energy fluctuation in the time step";
inline constexpr const char* kMomentumCheck = "change of momentum";
inline constexpr const char* kAngularMomentumCheck = "change of angular momentum";
inline constexpr const char* kTemperatureCheck = "mean temperature in a bath";
inline constexpr const char* kTemperatureShapeCheck = "distribution of the temperature";
inline constexpr const char* kEquipartitionCheck = "equipartition, worst element";
inline constexpr const char* kBondMeanCheck = "mean length of a bond, against the start";
inline constexpr const char* kBondStretchCheck = "length of a bond at any time, against the start";
inline constexpr const char* kContactCheck = "closest contact";
inline constexpr const char* kFreeDistancesCheck = "pair distances without a bath, against those in it";
inline constexpr const char* kReferenceForceCheck = "forces against the fp64 reference, worst atom";
inline constexpr const char* kOtherForceCheck = "forces against the other model, rms";
inline constexpr const char* kOtherEnergyCheck = "energies against the other model, rms";
inline constexpr const char* kOtherDistancesCheck = "pair distances in a bath against the other model, worst pair";

}  // namespace mlff::validate
