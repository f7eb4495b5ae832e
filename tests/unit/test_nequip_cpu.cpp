// SPDX-License-Identifier: MIT
// The fast CPU backend of SevenNet and Nequix: threads, batches, tables with a break. test_goldens.cpp has its numbers.
#include <doctest/doctest.h>

#include "backend.h"
#include "neighbors/batch_edges.h"
#include "nequip/cpu/evaluator.h"
#include "nequip/weights/weights.h"
#include "potential/batch_evaluation.h"
#include "test_mace_backends.h"

using namespace mace_test;
using mlff::test::backend;

namespace {

std::shared_ptr<const nequip::Weights> golden_weights(const std::string& name) {
    const std::string path = std::string(MLFF_NEQUIP_GOLDEN_DIR "/") + name;
    return std::make_shared<const nequip::Weights>(nequip::load_weights(open_module_file(path).root, 0));
}

constexpr const char* kXplor = "p12_v093_names_of_22may_f32.pth";
constexpr const char* kWithHeads = "p10_three_modals_all_flags.pth";
constexpr const char* kWithNorm = "n03_lmax1_two_layers.nqx";
constexpr const char* kUnnormalised = "p11_v093_old_signs_f32.pth";

// Two atoms at this distance.
System pair_at(const nequip::Weights& weights, double distance) {
    System system;
    system.numbers = {weights.atomic_numbers.front(), weights.atomic_numbers.back()};
    system.positions = {0, 0, 0, 0.6 * distance, 0, 0.8 * distance};
    return system;
}

}  // namespace

TEST_CASE("SevenNet and Nequix: results do not depend on the number of threads, nor on the system before") {
    for (const char* name : {kXplor, kWithHeads, kWithNorm, kUnnormalised}) {
        CAPTURE(name);
        const auto weights = golden_weights(name);
        const System large = random_crystal(*weights, 3, 40, 9.5), small = random_crystal(*weights, 4, 5, 6.0);
        for (const bool is_single : {false, true}) {
            const auto evaluator = nequip::cpu::make_cpu_evaluator(weights, backend(is_single));
            const Result expected = evaluate(*evaluator, *weights, large, 1);
            const Result small_expected = evaluate(*evaluator, *weights, small, 1);
            for (int threads : {2, 3, 5}) {
                const Result found = evaluate(*evaluator, *weights, large, threads);
                CHECK(found.energy == expected.energy);
                CHECK(found.forces == expected.forces);
                CHECK(found.virial == expected.virial);
                CHECK(evaluate(*evaluator, *weights, small, threads).forces == small_expected.forces);
            }
        }
    }
}

TEST_CASE("SevenNet and Nequix: systems in a batch give what they give alone, to rounding") {
    for (const char* name : {kWithHeads, kWithNorm}) {
        CAPTURE(name);
        const auto weights = golden_weights(name);
        std::vector<System> systems = {random_crystal(*weights, 21, 12, 7.0), System{},
                                       random_crystal(*weights, 23, 9, 8.0)};
        systems[2].periodic = {};
        const auto evaluator = nequip::cpu::make_cpu_evaluator(weights, backend());
        ThreadTeam team(2);
        NeighborOptions options;
        options.cutoff = weights->cutoff;
        NeighborList list(options);
        BatchEdges batch;
        std::vector<Result> alone, together(systems.size());
        std::vector<SystemView> views;
        std::vector<Outputs> outputs;
        for (size_t i = 0; i < systems.size(); ++i) {
            alone.push_back(evaluate(*evaluator, *weights, systems[i], 1));
            views.push_back(systems[i].view());
            list.update(views.back(), team);
            batch.append(list.edges());
            Result& result = together[i];
            result.forces.assign(alone[i].forces.size(), NAN);
            result.virial.assign(9, NAN);
            result.atom_energies.assign(systems[i].numbers.size(), NAN);
            outputs.push_back(
                {&result.energy, result.forces.data(), result.virial.data(), result.atom_energies.data()});
        }
        evaluator->batches()->evaluate_batch(views, batch.edges(), outputs, team);
        for (size_t i = 0; i < systems.size(); ++i) {
            CHECK(std::abs(together[i].energy - alone[i].energy) <= 1e-11 * std::max(1.0, std::abs(alone[i].energy)));
            check_close(together[i].forces, alone[i].forces, 1e-11);
            check_close(together[i].virial, alone[i].virial, 1e-10);
            check_close(together[i].atom_energies, alone[i].atom_energies, 1e-11);
        }
    }
}

// The curvature of XPLOR has a step where it begins. A table without a break there would be wrong by 1e-4.
TEST_CASE("tables are exact on both sides of the onset of a cutoff function") {
    const auto weights = golden_weights(kXplor);
    const double onset = weights->radial.cutoff.onset;
    REQUIRE(onset > 0);
    REQUIRE(onset < weights->cutoff);
    const auto tabulated = nequip::cpu::make_cpu_evaluator(weights, backend()),
               exact = nequip::cpu::make_cpu_evaluator(weights, backend(false, 0, true));
    for (const double beyond : {-0.3, -0.011, -1e-3, -1e-7, 0.0, 1e-7, 1e-3, 0.011, 0.3}) {
        CAPTURE(beyond);
        const System system = pair_at(*weights, onset + beyond);
        const Result found = evaluate(*tabulated, *weights, system, 1),
                     expected = evaluate(*exact, *weights, system, 1);
        REQUIRE(expected.edge_count == 2);
        CHECK(std::abs(found.energy - expected.energy) <= 1e-10);
        CHECK(largest_difference(found.forces, expected.forces) <= 1e-9);
        CHECK(largest_size(expected.forces) > 1e-6);
    }
}

// Such tables have no break, or would have one just above their begin at 0.5 A.
TEST_CASE("tables are exact wherever a cutoff function begins") {
    for (const double onset : {0.01, 0.3, 0.5, std::nextafter(0.5, 1), 0.500000001, 0.50001, 0.53, 0.6, 4.4}) {
        CAPTURE(onset);
        auto weights = std::make_shared<nequip::Weights>(*golden_weights(kXplor));
        REQUIRE(onset < weights->cutoff);
        weights->radial.cutoff.onset = onset;
        const auto tabulated = nequip::cpu::make_cpu_evaluator(weights, backend()),
                   exact = nequip::cpu::make_cpu_evaluator(weights, backend(false, 0, true));
        for (const double distance : {0.45, 0.505, 0.55, 0.61, 1.0, 2.0, 0.9 * weights->cutoff}) {
            CAPTURE(distance);
            const System system = pair_at(*weights, distance);
            const Result found = evaluate(*tabulated, *weights, system, 1),
                         expected = evaluate(*exact, *weights, system, 1);
            REQUIRE(expected.edge_count == 2);
            CHECK(std::abs(found.energy - expected.energy) <= 1e-10 * std::max(1.0, std::abs(expected.energy)));
            CHECK(largest_difference(found.forces, expected.forces) <=
                  1e-9 * std::max(1.0, largest_size(expected.forces)));
            CHECK(largest_size(expected.forces) > 1e-6);
        }
    }
}

TEST_CASE("SevenNet and Nequix: forces are the slope of the energy that is computed, tables included") {
    for (const char* name : {kXplor, kWithNorm, kUnnormalised}) {
        CAPTURE(name);
        const auto weights = golden_weights(name);
        const System system = random_crystal(*weights, 5, 6, 5.5);
        const auto evaluator = nequip::cpu::make_cpu_evaluator(weights, backend());
        const Result found = evaluate(*evaluator, *weights, system, 1);
        std::vector<double> expected(found.forces.size());
        constexpr double kStep = 1e-4;
        const auto energy_at = [&](size_t i, double step) {
            System moved = system;
            moved.positions[i] += step;
            return evaluate(*evaluator, *weights, moved, 1).energy;
        };
        for (size_t i = 0; i < expected.size(); ++i)
            expected[i] = -(8 * (energy_at(i, kStep) - energy_at(i, -kStep)) -
                            (energy_at(i, 2 * kStep) - energy_at(i, -2 * kStep))) /
                          (12 * kStep);
        check_close(found.forces, expected, 1e-7);
    }
}
