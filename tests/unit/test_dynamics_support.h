// SPDX-License-Identifier: MIT
// Systems whose statistics are known, cheap enough for many steps.
#pragma once

#include <cmath>
#include <vector>

#include "dynamics/force_provider.h"
#include "dynamics/particles.h"

namespace mlff::test {

inline Particles argon_atoms(std::vector<double> positions, double box = 0) {
    const std::vector<int32_t> numbers(positions.size() / 3, 18);
    SystemView system;
    system.atom_count = static_cast<int64_t>(numbers.size());
    system.atomic_numbers = numbers.data();
    system.positions = positions.data();
    for (size_t k = 0; k < 3; ++k) {
        system.cell[k][k] = box;
        system.periodic[k] = box > 0;
    }
    return Particles(system);
}

// Atoms that do not feel each other.
class IdealGas : public ForceProvider {
public:
    double compute(const SystemView& system, double* forces, double* virial) override {
        std::fill_n(forces, 3 * system.atom_count, 0.0);
        if (virial) std::fill_n(virial, 9, 0.0);
        return 0;
    }
};

// Each atom on a spring of its own about where it began: V = k/2 sum (x - x0)^2.
class Springs : public ForceProvider {
public:
    Springs(std::vector<double> centers, double stiffness) : centers_(std::move(centers)), stiffness_(stiffness) {}
    double compute(const SystemView& system, double* forces, double*) override {
        double energy = 0;
        for (size_t i = 0; i < static_cast<size_t>(3 * system.atom_count); ++i) {
            const double away = system.positions[i] - centers_[i];
            energy += 0.5 * stiffness_ * away * away;
            forces[i] = -stiffness_ * away;
        }
        return energy;
    }

private:
    std::vector<double> centers_;
    double stiffness_;
};

// A ring of atoms with springs that harden, so that energy spreads over all motions: V = sum over neighbours of d^2/2 +
// d^4 for each component, d the change of the difference of their positions (eV, angstrom).
class HardeningRing : public ForceProvider {
public:
    explicit HardeningRing(std::vector<double> start) : start_(std::move(start)) {}
    double compute(const SystemView& system, double* forces, double*) override {
        const auto count = static_cast<size_t>(system.atom_count);
        std::fill_n(forces, 3 * count, 0.0);
        double energy = 0;
        for (size_t atom = 0; atom < count; ++atom)
            for (size_t k = 0; k < 3; ++k) {
                const size_t i = 3 * atom + k, j = 3 * ((atom + 1) % count) + k;
                const double d = (system.positions[j] - start_[j]) - (system.positions[i] - start_[i]),
                             slope = d + 4 * d * d * d;
                energy += 0.5 * d * d + d * d * d * d;
                forces[i] += slope;
                forces[j] -= slope;
            }
        return energy;
    }

private:
    std::vector<double> start_;
};

}  // namespace mlff::test
