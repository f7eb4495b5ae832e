// SPDX-License-Identifier: MIT
// Wave vectors on a regular mesh, and sums over them: density of states, heat.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "properties/phonons/space_group.h"

namespace mlff::phonons {

// A mode with a frequency up to this, in THz, does not count in thermal sums. One below its opposite is imaginary.
inline constexpr double kZeroFrequency = 1e-3;

struct MeshPoint {
    Vec3 wave_vector{};  // in reciprocal vectors of the primitive cell
    double weight = 0;   // all together: 1
};

// A mesh that contains Gamma. Of points that the operations and time reversal make equal, one. Throws Error{argument}
// for counts below 1, or for more than 10 million points.
std::vector<MeshPoint> mesh_points(const std::array<int64_t, 3>& counts,
                                   std::span<const FractionalOperation> operations);

// Counts with at most 0.1/angstrom (with 2 pi) between points.
std::array<int64_t, 3> default_mesh(const Mat3& lattice);

// Frequencies by mesh point and mode, THz.
struct MeshModes {
    std::vector<MeshPoint> points;
    std::vector<std::vector<double>> frequencies;
};

int64_t imaginary_count(const std::vector<std::vector<double>>& frequencies);

struct StateDensity {
    double width = 0;                 // of the Gaussians that modes are spread by, THz
    std::vector<double> frequencies;  // THz
    std::vector<double> states;       // 1/THz, in a primitive cell; the integral is the number of modes
};

// With Gaussians of 1/100 of the range of frequencies.
StateDensity state_density(const MeshModes& modes, size_t point_count = 401);

// Of harmonic modes, for a primitive cell.
struct ThermalPoint {
    double temperature = 0;    // K
    double free_energy = 0;    // eV, with the zero-point energy
    double entropy = 0;        // eV/K
    double heat_capacity = 0;  // eV/K, at constant volume
};

double zero_point_energy(const MeshModes& modes);  // eV
ThermalPoint thermal_point(const MeshModes& modes, double temperature);

}  // namespace mlff::phonons
