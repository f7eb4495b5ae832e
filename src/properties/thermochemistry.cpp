// SPDX-License-Identifier: MIT
#include "properties/thermochemistry.h"

#include <cmath>
#include <vector>

#include "dynamics/units.h"
#include "properties/eigenvalues.h"
#include "properties/units.h"

namespace mlff {
namespace {

// Moments of inertia, u angstrom^2, ascending.
std::vector<double> moments_of_inertia(std::span<const double> masses, std::span<const double> positions) {
    double center[3] = {}, total = 0;
    for (size_t i = 0; i < masses.size(); ++i) {
        total += masses[i];
        for (size_t k = 0; k < 3; ++k) center[k] += masses[i] * positions[3 * i + k];
    }
    std::vector<double> inertia(9);
    for (size_t i = 0; i < masses.size(); ++i) {
        double place[3];
        for (size_t k = 0; k < 3; ++k) place[k] = positions[3 * i + k] - center[k] / total;
        const double square = place[0] * place[0] + place[1] * place[1] + place[2] * place[2];
        for (size_t a = 0; a < 3; ++a)
            for (size_t b = 0; b < 3; ++b)
                inertia[3 * a + b] += masses[i] * ((a == b ? square : 0) - place[a] * place[b]);
    }
    return eigenvectors_of_symmetric(inertia, 3).values;
}

// The number of states of a free motion with this inertia or mass along one coordinate: sqrt(2 pi m k T) / h, in
// 1/angstrom for u, or without a unit for u angstrom^2.
double states_of_motion(double mass, double temperature) {
    const double thermal_energy = kBoltzmann * temperature * kJoulePerElectronvolt;
    return std::sqrt(2 * std::numbers::pi * mass * kKilogramPerU * thermal_energy) / kPlanckJouleSecond * 1e-10;
}

}  // namespace

VibrationalEnergy vibrational_energy(std::span<const double> frequencies, double temperature) {
    VibrationalEnergy sum;
    for (const double frequency : frequencies) {
        if (!(frequency > 0)) continue;
        const double quantum = frequency * kElectronvoltPerWavenumber;
        sum.zero_point_energy += quantum / 2;
        sum.internal_energy += quantum / 2;
        if (!(temperature > 0)) continue;
        const double x = quantum / (kBoltzmann * temperature), occupation = 1 / std::expm1(x);
        sum.internal_energy += quantum * occupation;
        sum.entropy += kBoltzmann * ((x < 700 ? x * occupation : 0) - std::log1p(-std::exp(-x)));
        sum.heat_capacity += x < 300 ? kBoltzmann * x * x * occupation * (occupation + 1) : 0;
    }
    return sum;
}

Thermochemistry thermochemistry_of(const IdealGas& gas, double temperature, double pressure) {
    const double thermal = kBoltzmann * temperature;
    Thermochemistry result;
    result.vibrations = vibrational_energy(gas.frequencies, temperature);
    double total_mass = 0;
    for (const double mass : gas.masses) total_mass += mass;

    const double volume = thermal * kJoulePerElectronvolt / (pressure * kPascalPerBar) * 1e30;  // angstrom^3 a molecule
    result.translational_entropy =
        kBoltzmann * (std::log(std::pow(states_of_motion(total_mass, temperature), 3) * volume) + 2.5);
    double rotations = 0;  // degrees of freedom
    if (gas.masses.size() > 1) {
        const std::vector<double> moments = moments_of_inertia(gas.masses, gas.positions);
        rotations = gas.is_linear ? 2 : 3;
        double states = gas.is_linear ? 4 * std::numbers::pi : 8 * std::numbers::pi * std::numbers::pi;
        for (size_t k = gas.is_linear ? 1 : 0; k < 3; ++k) states *= states_of_motion(moments[k], temperature);
        result.rotational_entropy = kBoltzmann * (std::log(states / gas.symmetry_number) + rotations / 2);
    }
    result.electronic_entropy = kBoltzmann * std::log(gas.spin_multiplicity);
    result.internal_energy = result.vibrations.internal_energy + (3 + rotations) / 2 * thermal;
    result.enthalpy = result.internal_energy + thermal;
    result.entropy = result.vibrations.entropy + result.translational_entropy + result.rotational_entropy +
                     result.electronic_entropy;
    result.heat_capacity = result.vibrations.heat_capacity + ((3 + rotations) / 2 + 1) * kBoltzmann;
    result.gibbs_energy = result.enthalpy - temperature * result.entropy;
    return result;
}

}  // namespace mlff
