// SPDX-License-Identifier: MIT
// The reference backend against what must hold for any model; its goldens are in test_goldens.cpp.
#include <doctest/doctest.h>

#include "core/error.h"
#include "test_mace_support.h"

using namespace mace_test;

namespace {

// The repository's small set may lack a case; any case that exists serves where a test only needs some model.
std::vector<std::string> models_that_exist(const std::vector<std::string>& names) {
    std::vector<std::string> found;
    for (const std::string& name : names)
        if (!golden_model(name).empty()) found.push_back(name);
    return found;
}

// One model of each kind, so that every stage is covered by the properties below.
const std::vector<std::string> kVariedModels = {"p03_mace_plain_l1", "p04_density_agnesi_zbl", "p06_att_residual_f32",
                                                "p07_nonlinear_mh",  "p13_chebyshev_agnesi",   "p17_so3",
                                                "p25_odd_parity"};

// A crowded little cell, no symmetry, elements of the model in turn.
System crowded_cell(const Model& model, size_t atom_count) {
    System system;
    system.cell = {{{4.6, 0.2, 0.1}, {-0.3, 4.9, 0.4}, {0.5, -0.2, 5.1}}};
    system.periodic = {true, true, true};
    uint32_t state = 12345;
    const auto random = [&] {
        state = state * 1664525u + 1013904223u;
        return static_cast<double>(state >> 8) / (1 << 24);
    };
    for (size_t atom = 0; atom < atom_count; ++atom) {
        const auto& known = model.weights->atomic_numbers;
        system.numbers.push_back(known[atom % known.size()]);
        for (size_t k = 0; k < 3; ++k)
            system.positions.push_back(2.3 * static_cast<double>((atom >> k) & 1u) + 0.6 * random());
    }
    return system;
}

void check_close(double found, double expected, double tolerance) {
    CHECK(std::abs(found - expected) <= tolerance * std::max(1.0, std::abs(expected)));
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
    CHECK(largest_difference(found, expected) <= tolerance * std::max(1.0, largest_size(expected)));
}

// Forces add to nothing, atom virials to the virial, atom energies to the energy.
void check_sums(const Result& result) {
    std::vector<double> force(3, 0.0), virial(9, 0.0);
    double energy = 0;
    for (size_t i = 0; i < result.forces.size(); ++i) force[i % 3] += result.forces[i];
    for (size_t i = 0; i < result.atom_virials.size(); ++i) virial[i % 9] += result.atom_virials[i];
    for (double value : result.atom_energies) energy += value;
    CHECK(largest_size(force) <= 1e-11 * std::max(1.0, largest_size(result.forces)));
    check_close(virial, result.virial, 1e-12);
    check_close(energy, result.energy, 1e-13);
}

void check_translation(const Model& model, const System& system, const Result& first) {
    System moved = system;
    for (size_t i = 0; i < moved.positions.size(); ++i) moved.positions[i] += i % 3 == 0 ? 0.7 : -11.3;
    const Result second = model.evaluate(moved);
    check_close(second.energy, first.energy, 1e-11);
    check_close(second.forces, first.forces, 1e-11);
}

void check_rotation(const Model& model, const System& system, const Result& first, double tolerance) {
    const double c = std::cos(0.8), s = std::sin(0.8), d = std::cos(2.1), t = std::sin(2.1);
    const double rotation[3][3] = {{c, -s, 0}, {s * d, c * d, -t}, {s * t, c * t, d}};
    const auto rotated = [&](const double* v, size_t k) {
        return rotation[k][0] * v[0] + rotation[k][1] * v[1] + rotation[k][2] * v[2];
    };
    System turned = system;
    std::vector<double> forces(first.forces.size());
    for (size_t atom = 0; atom < system.numbers.size(); ++atom)
        for (size_t k = 0; k < 3; ++k) {
            turned.positions[atom * 3 + k] = rotated(&system.positions[atom * 3], k);
            forces[atom * 3 + k] = rotated(&first.forces[atom * 3], k);
        }
    for (size_t row = 0; row < 3; ++row)
        for (size_t k = 0; k < 3; ++k) turned.cell[row][k] = rotated(system.cell[row].data(), k);
    const Result second = model.evaluate(turned);
    check_close(second.energy, first.energy, tolerance);
    check_close(second.forces, forces, tolerance);
}

void check_permutation(const Model& model, const System& system, const Result& first) {
    System swapped = system;
    const size_t last = system.numbers.size() - 1;
    std::swap(swapped.numbers[0], swapped.numbers[last]);
    for (size_t k = 0; k < 3; ++k) std::swap(swapped.positions[k], swapped.positions[last * 3 + k]);
    Result second = model.evaluate(swapped);
    for (size_t k = 0; k < 3; ++k) std::swap(second.forces[k], second.forces[last * 3 + k]);
    std::swap(second.atom_energies[0], second.atom_energies[last]);
    check_close(second.energy, first.energy, 1e-11);
    check_close(second.atom_energies, first.atom_energies, 1e-11);
    check_close(second.forces, first.forces, 1e-11);
}

// Two cells are twice one cell.
void check_replication(const Model& model, const System& system, const Result& first) {
    System doubled = system;
    for (size_t atom = 0; atom < system.numbers.size(); ++atom) {
        doubled.numbers.push_back(system.numbers[atom]);
        for (size_t k = 0; k < 3; ++k) doubled.positions.push_back(system.positions[atom * 3 + k] + system.cell[1][k]);
    }
    for (size_t k = 0; k < 3; ++k) doubled.cell[1][k] *= 2;
    const Result second = model.evaluate(doubled);
    std::vector<double> forces = first.forces, virial = first.virial;
    forces.insert(forces.end(), first.forces.begin(), first.forces.end());
    for (double& value : virial) value *= 2;
    check_close(second.energy, 2 * first.energy, 1e-11);
    check_close(second.forces, forces, 1e-11);
    check_close(second.virial, virial, 1e-11);
}

// The number of threads changes nothing, to the last bit.
void check_threads(const Model& model, const System& system, const Result& first) {
    const Result second = model.evaluate(system, 0, 3);
    CHECK(second.energy == first.energy);
    CHECK(second.forces == first.forces);
    CHECK(second.virial == first.virial);
    CHECK(second.atom_virials == first.atom_virials);
}

}  // namespace

TEST_CASE("mace reference: the comparison rejects NaN and wrong signs") {
    CHECK(largest_difference({1, NAN}, {1, 2}) == INFINITY);
    CHECK(largest_difference({NAN, 1}, {1, 1}) == INFINITY);
    CHECK(largest_difference({1}, {1, 2}) == INFINITY);
    CHECK(largest_difference({1, -2}, {1, 2}) == 4);
}

TEST_CASE("mace reference: forces are the slope of the energy") {
    for (const std::string& name : models_that_exist(kVariedModels)) {
        CAPTURE(name);
        const Model model(golden_model(name));
        System system = crowded_cell(model, 5);
        const Result center = model.evaluate(system);
        const double step = 1e-4;
        for (size_t i : {0u, 4u, 8u, 13u}) {
            const double before = system.positions[i];
            system.positions[i] = before + step;
            const double up = model.evaluate(system).energy;
            system.positions[i] = before - step;
            const double down = model.evaluate(system).energy;
            system.positions[i] = before;
            const double slope = -(up - down) / (2 * step);
            CHECK(std::abs(center.forces[i] - slope) <= 1e-5 * std::max(1.0, std::abs(slope)));
        }
    }
}

TEST_CASE("mace reference: the virial is the slope of the energy by strain") {
    for (const std::string& name : models_that_exist(kVariedModels)) {
        CAPTURE(name);
        const Model model(golden_model(name));
        const System system = crowded_cell(model, 4);
        const Result center = model.evaluate(system);
        const double step = 1e-4;
        const auto strained = [&](size_t a, size_t b, double size) {
            System result = system;
            const auto apply = [&](double* vector) {
                const double old[3] = {vector[0], vector[1], vector[2]};
                vector[a] += 0.5 * size * old[b];
                vector[b] += 0.5 * size * old[a];
            };
            for (auto& row : result.cell) apply(row.data());
            for (size_t atom = 0; atom < result.numbers.size(); ++atom) apply(&result.positions[atom * 3]);
            return model.evaluate(result).energy;
        };
        for (const auto& axes : {std::pair<size_t, size_t>{0, 0}, {1, 2}, {0, 1}}) {
            const size_t a = axes.first, b = axes.second;
            const double slope = -(strained(a, b, step) - strained(a, b, -step)) / (2 * step);
            CHECK(std::abs(center.virial[a * 3 + b] - slope) <= 1e-5 * std::max(1.0, std::abs(slope)));
        }
    }
}

TEST_CASE("mace reference: symmetries and sums") {
    for (const std::string& name : models_that_exist(kVariedModels)) {
        CAPTURE(name);
        const Model model(golden_model(name));
        const System system = crowded_cell(model, 6);
        const Result result = model.evaluate(system);
        check_sums(result);
        check_translation(model, system, result);
        // Couplings that a file stores in single precision or in a reduced basis are invariant only to about 1e-8.
        check_rotation(model, system, result, 1e-6);
        check_permutation(model, system, result);
        check_replication(model, system, result);
        check_threads(model, system, result);
    }
}

TEST_CASE("mace reference: exact rotations where the couplings are exact") {
    for (const std::string& name : models_that_exist({"p03_mace_plain_l1", "p13_chebyshev_agnesi", "p25_odd_parity"})) {
        CAPTURE(name);
        const Model model(golden_model(name));
        const System system = crowded_cell(model, 6);
        check_rotation(model, system, model.evaluate(system), 1e-11);
    }
}

TEST_CASE("mace reference: no edges, no atoms, what is not wanted, what is not known") {
    for (const std::string& name : models_that_exist(kVariedModels)) {
        CAPTURE(name);
        const Model model(golden_model(name));
        System lonely;
        lonely.numbers = {model.weights->atomic_numbers[0]};
        lonely.positions = {0, 0, 0};
        const Result one = model.evaluate(lonely);
        CHECK(std::isfinite(one.energy));
        CHECK(largest_size(one.forces) == 0);
        CHECK(largest_size(one.virial) == 0);

        const Result none = model.evaluate(System());
        CHECK(none.energy == 0);

        System far = lonely;
        far.numbers.push_back(lonely.numbers[0]);
        far.positions = {0, 0, 0, 50, 0, 0};
        CHECK(std::abs(model.evaluate(far).energy - 2 * one.energy) <= 1e-9);

        System unknown = lonely;
        unknown.numbers = {118};
        CHECK_THROWS_AS(model.evaluate(unknown), mlff::Error);

        const mlff::Edges edges = [] {
            static const int64_t first[2] = {0, 0};
            mlff::Edges result;
            result.atom_count = 1;
            result.first = first;
            return result;
        }();
        mlff::ThreadTeam team(1);
        mlff::mace::reference::ReferenceEvaluator evaluator(model.weights, 0);
        evaluator.evaluate(lonely.view(), edges, {}, team);
        CHECK_THROWS_AS(mlff::mace::reference::ReferenceEvaluator(model.weights, 99), mlff::Error);
    }
}
