// SPDX-License-Identifier: MIT
// The fast CPU backend of PaiNN against the reference, and its parts on their own. Its goldens are in test_goldens.cpp.
#include <doctest/doctest.h>

#include "../tags.h"
#include "backend.h"
#include "core/error.h"
#include "cpu_kernels/kernel_table.h"
#include "engine/load_model.h"
#include "engine/session.h"
#include "kernel_tables.h"
#include "neighbors/batch_edges.h"
#include "painn/cpu/evaluator.h"
#include "painn/cpu/filters.h"
#include "painn/functions/dense.h"
#include "painn/reference/message.h"
#include "potential/batch_evaluation.h"
#include "test_painn_support.h"

using namespace mlff;
using namespace painn_test;

namespace {

// Relative to the largest number, where that is above 1.
constexpr Tolerances kExact = {1e-11, 1e-11}, kDouble = {1e-8, 1e-7}, kMixed = {5e-6, 2e-5};

struct Way {
    BackendOptions options;
    Tolerances tolerances;
};
const Way kWays[] = {{test::backend(false, 0, true), kExact},
                     {test::backend(), kDouble},
                     {test::backend(true), kMixed},
                     {test::backend(true, 0, true), kMixed}};

const Shape kShapes[] = {{},
                         {64, 3, 20, 5.0, {1, 7, 8, 16}, true, 5},
                         {96, 1, 5, 3.5, {6}, false, 6},
                         {128, 3, 20, 5.0, {1, 6, 8}, true, 7},
                         {32, 8, 64, 6.0, {1, 8}, true, 8, 0.03},
                         {64, 2, 12, 5.0, {1, 6, 8}, true, 9, 0.15, 1.9}};
const Shape& kNearField = kShapes[5];

Result evaluate_cpu(const std::shared_ptr<const painn::Weights>& weights, const System& system,
                    const BackendOptions& options, int threads = 1) {
    return mace_test::evaluate(*painn::cpu::make_cpu_evaluator(weights, options), *weights, system, threads);
}

System without_cell(System system) {
    system.cell = {};
    system.periodic = {};
    return system;
}

}  // namespace

TEST_CASE("the reference's numbers: crystals, molecules, atoms in small cells, alone and in pairs" *
          test::kSlowUnderSanitizers) {
    for (const Shape& shape : kShapes) {
        CAPTURE(shape.hidden);
        CAPTURE(shape.radial);
        const auto weights = shared_weights(shape);
        const int32_t z = shape.atomic_numbers.back();
        System one, pair, far_pair;
        one.numbers = {z};
        one.positions = {1, 2, 3};
        pair.numbers = far_pair.numbers = {z, z};
        pair.positions = {0, 0, 0, 0.4, 0.8, -0.3};
        far_pair.positions = {0, 0, 0, 10, 0, 0};
        const System crystal = random_crystal(*weights, 3, 30, 7.5), small_cell = random_crystal(*weights, 4, 2, 2.9);
        for (const System& system : {System{}, one, pair, far_pair, small_cell, without_cell(crystal), crystal}) {
            CAPTURE(system.numbers.size());
            const Result expected = evaluate_reference(weights, system);
            for (const Way& way : kWays) {
                CAPTURE(way.options.is_single());
                CAPTURE(way.options.exact_radial);
                check_results(evaluate_cpu(weights, system, way.options, 2), expected, way.tolerances);
            }
        }
    }
}

TEST_CASE("the reference's numbers for more atoms than a group of links has, on any number of threads" *
          test::kSlowUnderSanitizers) {
    const auto weights = shared_weights(kShapes[0]);
    const System system = random_crystal(*weights, 9, 300, 15.5);
    const Result expected = evaluate_reference(weights, system);
    for (const Way& way : kWays) {
        CAPTURE(way.options.is_single());
        CAPTURE(way.options.exact_radial);
        const Result found = evaluate_cpu(weights, system, way.options, 1);
        check_results(found, expected, way.tolerances);
        CHECK(evaluate_cpu(weights, system, way.options, 3).forces == found.forces);
    }
}

TEST_CASE("bits do not depend on the number of threads, and an evaluator may go from system to system") {
    const auto weights = shared_weights(kShapes[1]);
    const System large = random_crystal(*weights, 3, 150, 11.0), small = random_crystal(*weights, 4, 5, 6.0);
    for (const bool is_mixed : {false, true}) {
        const auto evaluator = painn::cpu::make_cpu_evaluator(weights, test::backend(is_mixed));
        const Result expected = mace_test::evaluate(*evaluator, *weights, large, 1),
                     small_expected = mace_test::evaluate(*evaluator, *weights, small, 1);
        for (const int threads : {1, 2, 3, 5}) {
            const Result found = mace_test::evaluate(*evaluator, *weights, large, threads);
            CHECK(found.energy == expected.energy);
            CHECK(found.forces == expected.forces);
            CHECK(found.virial == expected.virial);
            CHECK(found.atom_energies == expected.atom_energies);
            CHECK(found.atom_virials == expected.atom_virials);
            CHECK(mace_test::evaluate(*evaluator, *weights, small, threads).forces == small_expected.forces);
        }
    }
}

TEST_CASE("forces and virial are the slopes of the energy it computes, tables included") {
    for (const Shape& shape : {kShapes[0], kNearField}) {
        CAPTURE(shape.closest);
        const auto weights = shared_weights(shape);
        const System system = random_crystal(*weights, 5, 6, 4.2);
        const auto evaluator = painn::cpu::make_cpu_evaluator(weights, {});
        const Result found = mace_test::evaluate(*evaluator, *weights, system, 1);
        constexpr double kStep = 1e-4;
        const auto slope = [&](const std::function<System(double)>& moved) {
            const auto energy = [&](double step) {
                return mace_test::evaluate(*evaluator, *weights, moved(step), 1).energy;
            };
            return (8 * (energy(kStep) - energy(-kStep)) - (energy(2 * kStep) - energy(-2 * kStep))) / (12 * kStep);
        };
        std::vector<double> forces, virial;
        for (size_t i = 0; i < system.positions.size(); ++i)
            forces.push_back(-slope([&](double step) {
                System moved = system;
                moved.positions[i] += step;
                return moved;
            }));
        check_all(found.forces, forces, 1e-8);
        for (size_t a = 0; a < 3; ++a)
            for (size_t b = 0; b < 3; ++b)
                virial.push_back(-slope([&](double strain) {
                    System moved = system;
                    const auto stretch = [&](const double* from, double* to) {
                        to[a] += 0.5 * strain * from[b];
                        to[b] += 0.5 * strain * from[a];
                    };
                    for (size_t i = 0; i < system.positions.size(); i += 3)
                        stretch(&system.positions[i], &moved.positions[i]);
                    for (size_t k = 0; k < 3; ++k) stretch(system.cell[k].data(), moved.cell[k].data());
                    return moved;
                }));
        check_all(found.virial, virial, 1e-8);
    }
}

TEST_CASE("systems in a batch give what they give alone, to rounding" * test::kSlowUnderSanitizers) {
    const auto weights = shared_weights(kShapes[1]);
    std::vector<System> systems = {random_crystal(*weights, 21, 12, 7.0),
                                   without_cell(random_crystal(*weights, 22, 3, 5.0)), System{},
                                   random_crystal(*weights, 23, 20, 8.0)};
    for (const bool is_mixed : {false, true}) {
        const auto evaluator = painn::cpu::make_cpu_evaluator(weights, test::backend(is_mixed));
        ThreadTeam team(2);
        NeighborOptions options;
        options.cutoff = weights->cutoff;
        NeighborList list(options);
        BatchEdges batch;
        std::vector<Result> alone, together(systems.size());
        std::vector<SystemView> views;
        std::vector<Outputs> outputs;
        for (size_t i = 0; i < systems.size(); ++i) {
            alone.push_back(mace_test::evaluate(*evaluator, *weights, systems[i], 1));
            views.push_back(systems[i].view());
            list.update(views.back(), team);
            batch.append(list.edges());
            together[i] = alone[i];
            for (auto* values :
                 {&together[i].forces, &together[i].virial, &together[i].atom_energies, &together[i].atom_virials})
                std::fill(values->begin(), values->end(), NAN);
            outputs.push_back({&together[i].energy, together[i].forces.data(), together[i].virial.data(),
                               together[i].atom_energies.data(), together[i].atom_virials.data()});
        }
        CHECK(evaluator->batches()->can_batch(views[0], views[1]));
        evaluator->batches()->evaluate_batch(views, batch.edges(), outputs, team);
        for (size_t i = 0; i < systems.size(); ++i) check_results(together[i], alone[i], is_mixed ? kMixed : kExact);
    }
}

TEST_CASE("descriptors are the last scalars; energies alone need no gradients") {
    const auto weights = shared_weights(kShapes[0]);
    const System system = random_crystal(*weights, 2, 9, 6.0);
    NeighborOptions options;
    options.cutoff = weights->cutoff;
    const BruteForceEdges list = brute_force_neighbors(system.view(), options);
    ThreadTeam team(1);
    const auto run = [&](Evaluator& evaluator) {
        std::vector<double> all(system.numbers.size() * 32 + 1, NAN);
        Outputs outputs;
        outputs.energy = &all.back();
        outputs.descriptors = all.data();
        evaluator.evaluate(system.view(), mace_test::edges_of(list), outputs, team);
        return all;
    };
    painn::reference::ReferenceEvaluator reference(weights);
    const std::vector<double> expected = run(reference);
    check_all(run(*painn::cpu::make_cpu_evaluator(weights, test::backend(false, 0, true))), expected, 1e-12);
    check_all(run(*painn::cpu::make_cpu_evaluator(weights, test::backend(true))), expected, 1e-6);
}

TEST_CASE("filters: table and exact functions agree, values and slopes") {
    for (const Shape& shape : {kShapes[0], kShapes[3], kShapes[4]}) {
        const painn::Weights weights = random_weights(shape);
        const auto width = static_cast<size_t>(weights.hidden);
        const size_t last = weights.blocks.size() - 1;
        const std::vector<double> distances = {0.02, 0.3, 0.77, 1.5, 2.9, weights.cutoff - 1e-9};
        const auto count = static_cast<int64_t>(distances.size());
        // [distance][value, slope][3F] of the last block, read as the kernels read it
        const auto read = [&](auto real, bool is_exact) {
            using Real = decltype(real);
            painn::cpu::Filters<Real> filters(weights, is_exact);
            typename painn::cpu::Filters<Real>::Scratch scratch;
            filters.start(count);
            filters.locate(distances.data(), 0, count);
            std::vector<double> all(distances.size() * 6 * width);
            for (size_t k = 0; k < 3 * width; ++k) {
                const size_t part = k / width, channel = k % width;
                const Real* table = filters.strip(last, static_cast<int>(channel / 16), 0, count, scratch);
                for (size_t i = 0; i < distances.size(); ++i) {
                    const kernels::SplineShares<Real>& shares = filters.shares()[i];
                    const Real* row = table + shares.interval * kernels::kSplineRows * 48 +
                                      static_cast<int64_t>(part * 16 + channel % 16);
                    double value = static_cast<double>(row[0]), slope = 0;
                    for (int t = 0; t < kernels::kSplineOrder; ++t) {
                        value += static_cast<double>(shares.value[t] * row[kernels::spline_row(t) * 48]);
                        slope += static_cast<double>(shares.slope[t] * row[kernels::spline_row(t) * 48]);
                    }
                    all[(2 * i) * 3 * width + k] = value;
                    all[(2 * i + 1) * 3 * width + k] = slope;
                }
            }
            return all;
        };
        std::vector<double> expected;
        for (const double d : distances) {
            std::vector<double> filter(3 * width), by_filter(3 * width, 0.0);
            painn::reference::compute_filter(weights, weights.blocks[last], d, filter.data());
            expected.insert(expected.end(), filter.begin(), filter.end());
            for (size_t k = 0; k < 3 * width; ++k) {
                by_filter[k] = 1;
                expected.push_back(
                    painn::reference::reverse_filter(weights, weights.blocks[last], d, by_filter.data()));
                by_filter[k] = 0;
            }
        }
        check_all(read(0.0, true), expected, 1e-12);
        check_all(read(0.0, false), expected, 1e-7);
        check_all(read(0.0f, false), expected, 1e-5);
    }
}

TEST_CASE("the activation of every instruction set, far out too") {
    const auto check = [&](auto real, double tolerance) {
        using Real = decltype(real);
        Buffer<Real> values, slopes;
        values.resize_discard(64);
        slopes.resize_discard(64);
        std::vector<double> expected, found;
        for (size_t i = 0; i < 64; ++i) {
            const double x = i < 58 ? -9 + 0.31 * static_cast<double>(i)
                                    : std::vector<double>{-1e4, -100, -87.5, 88.2, 100, 1e4}[i - 58];
            values[i] = static_cast<Real>(x);
            expected.push_back(painn::silu(static_cast<double>(values[i])));
            expected.push_back(painn::silu_slope(static_cast<double>(values[i])));
        }
        kernels::choose_kernels<Real>().activate_silu(values.data(), slopes.data(), 64);
        for (size_t i = 0; i < 64; ++i) {
            found.push_back(static_cast<double>(values[i]));
            found.push_back(static_cast<double>(slopes[i]));
            CHECK(test::is_close(found[2 * i], expected[2 * i], tolerance * std::max(1.0, std::abs(expected[2 * i]))));
            CHECK(test::is_close(found[2 * i + 1], expected[2 * i + 1], tolerance));
        }
    };
    test::for_each_kernel_table([&](const std::string&) {
        check(0.0f, 1e-6);
        check(0.0, 1e-14);
        const auto weights = shared_weights(kShapes[1]);
        const System system = random_crystal(*weights, 8, 30, 8.0);
        const Result expected = evaluate_reference(weights, system);
        check_results(evaluate_cpu(weights, system, test::backend()), expected, kDouble);
        check_results(evaluate_cpu(weights, system, test::backend(true)), expected, kMixed);
    });
}

TEST_CASE("sessions: precision by device, unknown elements refused") {
    const auto model = load_model(std::string(MLFF_PAINN_GOLDEN_DIR) + "/two_blocks_f32.safetensors");
    CHECK(model->choose_precision(*parse_device("cpu"), Precision::automatic) == Precision::mixed);
    CHECK(model->choose_precision(*parse_device("cpu"), Precision::fp64) == Precision::fp64);
    CHECK(model->choose_precision(*parse_device("reference"), Precision::automatic) == Precision::fp64);
    CHECK_THROWS_AS(model->choose_precision(*parse_device("reference"), Precision::mixed), Error);
    CHECK_THROWS_AS(model->choose_precision(*parse_device("cpu"), Precision::fast), Error);
    CHECK_THROWS_AS(model->choose_precision(*parse_device("reference"), Precision::fast), Error);
    CHECK(model->choose_precision(*parse_device("cuda"), Precision::fast) == Precision::fast);
    CHECK(model->choose_precision(*parse_device("cuda"), Precision::automatic) == Precision::mixed);
    System system;
    system.numbers = {6, 92};
    system.positions = {0, 0, 0, 1, 0, 0};
    const auto weights = shared_weights(kShapes[0]);
    CHECK_THROWS_AS(evaluate_cpu(weights, system, test::backend(true)), Error);
}
