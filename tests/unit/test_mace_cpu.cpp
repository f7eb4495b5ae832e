// SPDX-License-Identifier: MIT
// The fast CPU backend: against the reference, against what must hold for any model, and its parts on their own. Its
// goldens are in test_goldens.cpp.
#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "../tags.h"
#include "backend.h"
#include "capture_binding.h"
#include "core/error.h"
#include "cpu_kernels/forced_kernels.h"
#include "cpu_kernels/kernel_table.h"
#include "equivariant/dense_network.h"
#include "equivariant/edge_harmonics.h"
#include "equivariant/plan/batched_network.h"
#include "equivariant/spherical_harmonics.h"
#include "mace/cpu/evaluator.h"
#include "mace/plan/layer_plan.h"
#include "mace/reference/evaluator.h"
#include "neighbors/batch_edges.h"
#include "potential/batch_evaluation.h"
#include "test_mace_backends.h"

using namespace mace_test;
using namespace mlff;
using namespace mlff::test;

TEST_CASE("results do not depend on the number of threads, and a session may go from system to system") {
    const auto path = golden_model("p09_l2_ell3");
    REQUIRE(!path.empty());
    const Model model(path);
    const System large = random_crystal(*model.weights, 3, 60, 9.5), small = random_crystal(*model.weights, 4, 5, 6.0);
    for (const bool is_single : {false, true}) {
        const auto evaluator = mace::cpu::make_cpu_evaluator(model.weights, backend(is_single));
        const Result expected = evaluate(*evaluator, *model.weights, large, 1);
        const Result small_expected = evaluate(*evaluator, *model.weights, small, 1);
        for (int threads : {1, 2, 3, 5}) {
            const Result found = evaluate(*evaluator, *model.weights, large, threads);
            CHECK(std::memcmp(&found.energy, &expected.energy, sizeof(double)) == 0);
            CHECK(found.forces == expected.forces);
            CHECK(found.virial == expected.virial);
            CHECK(evaluate(*evaluator, *model.weights, small, threads).forces == small_expected.forces);
        }
    }
}

TEST_CASE("descriptors are those of mace-torch, on every backend") {
    std::ifstream file(MLFF_GOLDEN_DIR "_descriptors.json");
    const nlohmann::json goldens = nlohmann::json::parse(file);
    for (const auto& [name, golden] : goldens.items()) {
        CAPTURE_BINDING(name);
        const Model model(golden_model(name));
        std::ifstream case_file(std::filesystem::path(MLFF_GOLDEN_DIR) / (name + ".json"));
        const nlohmann::json golden_case = nlohmann::json::parse(case_file);
        System system;
        for (const auto& record : golden_case["systems"])
            if (record["name"] == golden["system"]) system = read_system(record);
        REQUIRE(!system.numbers.empty());
        NeighborOptions options;
        options.cutoff = model.weights->cutoff;
        NeighborList list(options);
        ThreadTeam team(1);
        list.update(system.view(), team);
        const std::vector<double> expected = flat(golden["descriptors"]);
        REQUIRE(expected.size() == system.numbers.size() * static_cast<size_t>(model.weights->descriptor_count()));
        const auto compare = [&](Evaluator& evaluator, double tolerance) {
            std::vector<double> found(expected.size(), NAN);
            Outputs outputs;
            outputs.descriptors = found.data();
            evaluator.evaluate(system.view(), list.edges(), outputs, team);
            check_close(found, expected, tolerance);
        };
        mace::reference::ReferenceEvaluator reference(model.weights, 0);
        compare(reference, 1e-12);
        compare(*mace::cpu::make_cpu_evaluator(model.weights, {}), 1e-8);
        compare(*mace::cpu::make_cpu_evaluator(model.weights, backend(true)), 5e-6);
    }
}

TEST_CASE("systems in a batch give what they give alone, to rounding" * kSlowUnderSanitizers) {
    for (const char* name : {"p09_l2_ell3", "p08_omol_like_f32"}) {
        CAPTURE(name);
        const Model model(golden_model(name));
        std::vector<System> systems = {random_crystal(*model.weights, 21, 12, 7.0),
                                       random_crystal(*model.weights, 22, 3, 5.0), System{},
                                       random_crystal(*model.weights, 23, 20, 8.0)};
        systems[1].periodic = {};
        for (const bool is_single : {false, true}) {
            const auto evaluator = mace::cpu::make_cpu_evaluator(model.weights, backend(is_single));
            ThreadTeam team(2);
            NeighborOptions options;
            options.cutoff = model.weights->cutoff;
            NeighborList list(options);
            BatchEdges batch;
            std::vector<Result> alone, together(systems.size());
            std::vector<SystemView> views;
            std::vector<Outputs> outputs;
            for (size_t i = 0; i < systems.size(); ++i) {
                alone.push_back(evaluate(*evaluator, *model.weights, systems[i], 1));
                views.push_back(systems[i].view());
                list.update(views.back(), team);
                batch.append(list.edges());
                Result& result = together[i];
                result.forces.assign(alone[i].forces.size(), NAN);
                result.virial.assign(9, NAN);
                result.atom_energies.assign(systems[i].numbers.size(), NAN);
                result.atom_virials.assign(alone[i].atom_virials.size(), NAN);
                outputs.push_back({&result.energy, result.forces.data(), result.virial.data(),
                                   result.atom_energies.data(), result.atom_virials.data()});
            }
            evaluator->batches()->evaluate_batch(views, batch.edges(), outputs, team);
            for (size_t i = 0; i < systems.size(); ++i) {
                // Not to the bit on every machine: on x86-64 with g++ 13, dense products of another number of rows were
                // seen to round otherwise.
                const double tolerance = is_single ? 1e-5 : 1e-11;
                CHECK(std::abs(together[i].energy - alone[i].energy) <=
                      tolerance * std::max(1.0, std::abs(alone[i].energy)));
                check_close(together[i].forces, alone[i].forces, tolerance);
                check_close(together[i].virial, alone[i].virial, 10 * tolerance);
                check_close(together[i].atom_energies, alone[i].atom_energies, tolerance);
                check_close(together[i].atom_virials, alone[i].atom_virials, 10 * tolerance);
            }
        }
    }
    const Model charged(golden_model("p08_omol_like_f32"));
    SystemView neutral, ion;
    ion.total_charge = 1;
    const auto evaluator = mace::cpu::make_cpu_evaluator(charged.weights, {});
    CHECK(evaluator->batches()->can_batch(neutral, neutral));
    CHECK(!evaluator->batches()->can_batch(neutral, ion));
}

TEST_CASE("forces are the slope of the energy it computes, tables included") {
    for (const char* name : {"p04_density_agnesi_zbl", "p11_3layers_corrlist"}) {
        const auto path = golden_model(name);
        REQUIRE(!path.empty());
        const Model model(path);
        System system = random_crystal(*model.weights, 5, 6, 5.5);
        const auto evaluator = mace::cpu::make_cpu_evaluator(model.weights, {});
        const Result found = evaluate(*evaluator, *model.weights, system, 1);
        std::vector<double> expected(found.forces.size());
        constexpr double kStep = 1e-4;
        const auto energy_at = [&](size_t i, double x) {
            System moved = system;
            moved.positions[i] = x;
            return evaluate(*evaluator, *model.weights, moved, 1).energy;
        };
        for (size_t i = 0; i < expected.size(); ++i) {
            const double x = system.positions[i];
            expected[i] = -(8 * (energy_at(i, x + kStep) - energy_at(i, x - kStep)) -
                            (energy_at(i, x + 2 * kStep) - energy_at(i, x - 2 * kStep))) /
                          (12 * kStep);
        }
        check_close(found.forces, expected, 1e-8);
    }
}

TEST_CASE(
    "the virial is the slope of the energy by strain; a turned, shifted or repeated crystal is the same crystal") {
    const Model model(golden_model("p04_density_agnesi_zbl"));
    const System system = random_crystal(*model.weights, 31, 9, 6.0);
    const auto evaluator = mace::cpu::make_cpu_evaluator(model.weights, {});
    const Result found = evaluate(*evaluator, *model.weights, system, 1);
    constexpr Mat3 kUnit = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    constexpr double kStep = 1e-5;
    std::vector<double> slopes(9);
    for (size_t a = 0; a < 3; ++a)
        for (size_t b = 0; b < 3; ++b) {
            const auto energy_at = [&](double strain) {
                Mat3 matrix = kUnit;
                matrix[a][b] += 0.5 * strain;
                matrix[b][a] += 0.5 * strain;
                return evaluate(*evaluator, *model.weights, transformed(system, matrix, 0), 1).energy;
            };
            slopes[3 * a + b] = -(energy_at(kStep) - energy_at(-kStep)) / (2 * kStep);
        }
    check_close(found.virial, slopes, 1e-7);

    constexpr Mat3 kTurn = {{{0.6, -0.8, 0}, {0.8, 0.6, 0}, {0, 0, 1}}};
    const Result turned = evaluate(*evaluator, *model.weights, transformed(system, kTurn, 0.37), 1);
    CHECK(std::abs(turned.energy - found.energy) <= 1e-9);
    std::vector<double> expected(found.forces.size());
    for (size_t i = 0; i < expected.size(); i += 3)
        for (size_t a = 0; a < 3; ++a)
            for (size_t b = 0; b < 3; ++b) expected[i + a] += kTurn[a][b] * found.forces[i + b];
    check_close(turned.forces, expected, 1e-8);

    System doubled = system;
    for (size_t i = 0; i < system.positions.size(); ++i)
        doubled.positions.push_back(system.positions[i] + system.cell[2][i % 3]);
    doubled.numbers.insert(doubled.numbers.end(), system.numbers.begin(), system.numbers.end());
    for (double& x : doubled.cell[2]) x *= 2;
    const Result twice = evaluate(*evaluator, *model.weights, doubled, 1);
    CHECK(std::abs(twice.energy - 2 * found.energy) <= 1e-9);
    std::vector<double> forces = found.forces;
    forces.insert(forces.end(), found.forces.begin(), found.forces.end());
    check_close(twice.forces, forces, 1e-8);
}

TEST_CASE("networks on many rows: the reference's values, slopes and gradients") {
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    DenseNetwork network;
    for (const auto& [in, out] : {std::pair(5, 20), std::pair(20, 17), std::pair(17, 3)}) {
        DenseLayer layer;
        layer.in_width = in;
        layer.out_width = out;
        for (int i = 0; i < in * out; ++i) layer.weight.push_back(normal(random) / std::sqrt(in));
        for (int i = 0; i < out; ++i) layer.bias.push_back(normal(random));
        if (out == 17) {  // one layer with normalisation
            for (int i = 0; i < out; ++i)
                layer.norm_scale.push_back(1 + 0.3 * normal(random)), layer.norm_offset.push_back(normal(random));
            layer.norm_epsilon = 1e-5;
        }
        if (out != 3) layer.activation = {Activation::Kind::silu, 1.7};
        network.layers.push_back(layer);
    }
    constexpr int kRows = 7;
    const mace::plan::BatchedNetwork batched(network, network.layers.size());
    const auto& kernels = kernels::choose_kernels<double>();
    mace::plan::BatchedPass pass;
    batched.start(pass, kRows);
    std::vector<double> output_gradient(static_cast<size_t>(kRows * batched.out_stride()), 0.0);
    for (int row = 0; row < kRows; ++row) {
        for (int i = 0; i < 5; ++i) pass.input[static_cast<size_t>(row * batched.in_stride() + i)] = normal(random);
        for (int i = 0; i < 5; ++i)
            pass.input_slope[static_cast<size_t>(row * batched.in_stride() + i)] = normal(random);
        for (int i = 0; i < 3; ++i)
            output_gradient[static_cast<size_t>(row * batched.out_stride() + i)] = normal(random);
    }
    batched.compute(kernels, pass, kRows, true);
    const double* gradient = batched.reverse(kernels, pass, kRows, output_gradient.data());
    for (int row = 0; row < kRows; ++row) {
        const double* input = pass.input.data() + row * batched.in_stride();
        const double* slope = pass.input_slope.data() + row * batched.in_stride();
        const double* by_output = output_gradient.data() + row * batched.out_stride();
        NetworkPass reference(network);
        const double* values = reference.compute(input);
        std::vector<double> expected(values, values + 3), expected_gradient(5), expected_slopes;
        reference.reverse(by_output, expected_gradient.data());
        const double* found = pass.layers.back().output.data() + row * batched.out_stride();
        check_close({found, found + 3}, expected, 1e-13);
        check_close({gradient + row * batched.in_stride(), gradient + row * batched.in_stride() + 5}, expected_gradient,
                    1e-13);
        // The slope along the input's direction, against central differences.
        constexpr double kStep = 1e-5;
        for (const double sign : {1.0, -1.0}) {
            std::vector<double> moved(input, input + 5);
            for (size_t i = 0; i < 5; ++i) moved[i] += sign * kStep * slope[i];
            const double* at = reference.compute(moved.data());
            expected_slopes.resize(3, 0.0);
            for (size_t i = 0; i < 3; ++i) expected_slopes[i] += sign * at[i] / (2 * kStep);
        }
        const double* slopes = pass.layers.back().output_slope.data() + row * batched.out_stride();
        check_close({slopes, slopes + 3}, expected_slopes, 1e-8);
    }
}

TEST_CASE("atoms too close for the tables get the reference's numbers") {
    const auto path = golden_model("p04_density_agnesi_zbl");
    REQUIRE(!path.empty());
    const Model model(path);
    System system;
    system.numbers = {model.weights->atomic_numbers[0], model.weights->atomic_numbers[1],
                      model.weights->atomic_numbers[0]};
    system.positions = {0, 0, 0, 0.12, 0.1, 0, 1.4, 0, 0.2};
    const Result expected = model.evaluate(system);
    for (const bool is_single : {false, true}) {
        const auto evaluator = mace::cpu::make_cpu_evaluator(model.weights, backend(is_single));
        check_close(evaluate(*evaluator, *model.weights, system, 1).forces, expected.forces,
                    is_single ? kMixed.forces : kDouble.forces);
    }
}

TEST_CASE("harmonics written out agree with the general ones, and their gradients") {
    std::mt19937 random(11);
    std::normal_distribution<double> normal;
    for (int max_degree = 0; max_degree <= 4; ++max_degree) {
        const auto count = static_cast<size_t>(harmonic_count(max_degree));
        const Vec3 v = {normal(random), normal(random), normal(random)};
        const double length = std::sqrt(squared_length(v));
        const Vec3 direction = {v[0] / length, v[1] / length, v[2] / length};
        std::vector<double> found(count), expected(count), gradient(count), sum(3, 0.0);
        std::vector<Vec3> slopes(count);
        compute_edge_harmonics(max_degree, direction, found.data());
        compute_harmonics_and_gradients(max_degree, v, expected.data(), slopes.data());
        check_close(found, expected, 1e-13);
        for (size_t i = 0; i < count; ++i) {
            gradient[i] = normal(random);
            for (size_t k = 0; k < 3; ++k) sum[k] += gradient[i] * slopes[i][k];
        }
        const Vec3 turned = reverse_edge_harmonics(max_degree, direction, length, gradient.data());
        check_close({turned.begin(), turned.end()}, sum, 1e-12);
    }
}

TEST_CASE("kernels that the processor does not have are refused by name") {
    const Model model(golden_model("p09_l2_ell3"));
    const mlff::kernels::ForcedKernels forced("abacus");
    CHECK_THROWS_WITH_AS(mace::cpu::make_cpu_evaluator(model.weights, backend(true)),
                         doctest::Contains("MLFF_CPU is 'abacus'"), Error);
}
