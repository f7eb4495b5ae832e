// SPDX-License-Identifier: MIT
// What the tests of the fast MACE backends share: tolerances, one evaluation with all results, comparison with goldens.
#pragma once

#include <doctest/doctest.h>

#include <random>
#include <set>

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

template <class Weights>
Result evaluate(Evaluator& evaluator, const Weights& weights, const System& system, int threads) {
    NeighborOptions options;
    options.cutoff = weights.cutoff;
    NeighborList list(options);
    ThreadTeam team(threads);
    list.update(system.view(), team);
    Result result;
    const size_t atoms = system.numbers.size();
    result.forces.assign(atoms * 3, NAN);
    result.virial.assign(9, NAN);
    result.atom_energies.assign(atoms, NAN);
    result.atom_virials.assign(atoms * 9, NAN);
    result.edge_count = list.edges().edge_count;
    const Outputs outputs = {&result.energy, result.forces.data(), result.virial.data(), result.atom_energies.data(),
                             result.atom_virials.data()};
    evaluator.evaluate(system.view(), list.edges(), outputs, team);
    return result;
}

inline void check_close(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
    CHECK(largest_difference(found, expected) <= tolerance * std::max(1.0, largest_size(expected)));
}

inline void compare_with_golden(const Result& found, const nlohmann::json& record, const Tolerance& tolerance) {
    const nlohmann::json& golden = record["outputs"]["float64"];
    const double atoms = static_cast<double>(std::max<size_t>(1, found.atom_energies.size()));
    CHECK(found.edge_count == record["n_edges"].get<int64_t>());
    CHECK(std::abs(found.energy - golden["energy"].get<double>()) <= tolerance.energy_per_atom * atoms);
    check_close(found.atom_energies, flat(golden["node_energies"]), tolerance.energy_per_atom);
    check_close(found.forces, flat(golden["forces"]), tolerance.forces);
    // A virial adds over all edges, so its rounding grows with their number.
    const double edges = static_cast<double>(std::max<int64_t>(1, found.edge_count));
    CHECK(largest_difference(found.virial, flat(golden["virials"])) <=
          tolerance.virial * std::max({1.0, largest_size(found.virial), 0.01 * edges}));
    std::vector<double> virial(9, 0.0);
    for (size_t i = 0; i < found.atom_virials.size(); ++i) virial[i % 9] += found.atom_virials[i];
    check_close(virial, found.virial, 1e-11);
}

// Visits the models of all goldens that are energy models, with their records: visit(model, golden).
template <class Visit>
void for_each_golden_model(const Visit& visit) {
    std::set<std::string> seen;  // the larger set holds the cases of the repository too
    for (const auto& directory : golden_directories()) {
        MESSAGE("goldens from " << directory.string());
        for (const auto& path : golden_cases(directory)) {
            CAPTURE(path.string());
            if (!seen.insert(path.filename().string()).second) continue;
            std::ifstream file(path);
            const nlohmann::json golden = nlohmann::json::parse(file);
            if (golden["container"] == "state_dict" || golden["architecture"]["cls"] == "EnergyDipolesMACE") continue;
            visit(mace_test::Model(path.parent_path() / golden["model_file"].get<std::string>()), golden);
        }
    }
}
inline int head_of(const mace::Weights& weights, const nlohmann::json& record) {
    return weights.fixed_head >= 0 ? weights.fixed_head : record.value("head_index", 0);
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
