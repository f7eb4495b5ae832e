// SPDX-License-Identifier: MIT
// What the tests of the fast MACE backends share: tolerances, one evaluation with all results, crystals.
#pragma once

#include <doctest/doctest.h>

#include <random>

#include "potential/evaluator.h"
#include "test_mace_support.h"

namespace mace_test {

using namespace mlff;

// |found - expected| <= tolerance * max(1, largest expected), for every number; NaN fails.
struct Tolerance {
    double energy_per_atom, forces, virial;
};
inline constexpr Tolerance kExact = {1e-11, 1e-12, 1e-12};  // fp64 without tables; the goal is 1e-9 and 1e-8
inline constexpr Tolerance kDouble = {1e-9, 1e-8, 1e-8};    // with tabulated radial functions
inline constexpr Tolerance kMixed = {2e-5, 5e-6, 5e-5};

// `model` is anything with a cutoff; descriptor_count: of all atoms, 0 if they are not wanted.
template <class Model>
Result evaluate(Evaluator& evaluator, const Model& model, const System& system, int threads,
                size_t descriptor_count = 0) {
    NeighborOptions options;
    options.cutoff = model.cutoff;
    NeighborList list(options);
    ThreadTeam team(threads);
    list.update(system.view(), team);
    Result result;
    const size_t atoms = system.numbers.size();
    result.forces.assign(atoms * 3, NAN);
    result.virial.assign(9, NAN);
    result.atom_energies.assign(atoms, NAN);
    result.atom_virials.assign(atoms * 9, NAN);
    result.descriptors.assign(descriptor_count, NAN);
    result.edge_count = list.edges().edge_count;
    Outputs outputs = {&result.energy, result.forces.data(), result.virial.data(), result.atom_energies.data(),
                       result.atom_virials.data()};
    if (descriptor_count > 0) outputs.descriptors = result.descriptors.data();
    evaluator.evaluate(system.view(), list.edges(), outputs, team);
    return result;
}

inline void check_close(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
    CHECK(largest_difference(found, expected) <= tolerance * std::max(1.0, largest_size(expected)));
}

// A loose random crystal of the model's elements.
template <class Weights>
System random_crystal(const Weights& weights, unsigned seed, size_t atom_count, double length) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    System system;
    system.cell = {{{length, 0.2, 0.1}, {-0.3, length, 0.4}, {0.5, -0.2, length}}};
    system.periodic = {true, true, true};
    while (system.numbers.size() < atom_count) {
        Vec3 x{};
        for (size_t k = 0; k < 3; ++k) {
            const double f = uniform(random);
            for (size_t a = 0; a < 3; ++a) x[a] += f * system.cell[k][a];
        }
        bool is_free = true;
        for (size_t i = 0; i < system.positions.size(); i += 3)
            is_free &= std::hypot(x[0] - system.positions[i], x[1] - system.positions[i + 1],
                                  x[2] - system.positions[i + 2]) > 0.9;
        if (!is_free) continue;
        system.positions.insert(system.positions.end(), x.begin(), x.end());
        system.numbers.push_back(weights.atomic_numbers[random() % weights.atomic_numbers.size()]);
    }
    return system;
}

}  // namespace mace_test
