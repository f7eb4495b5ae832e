// SPDX-License-Identifier: MIT
// The GPU backend against the CPU; its goldens are in test_goldens.cpp. Tests that need a GPU pass without one, unless
// MLFF_REQUIRE_GPU is set (scripts/test --gpu).
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "backend.h"
#include "core/error.h"
#include "core/stage_profile.h"
#include "engine/session.h"
#include "gpu/runtime/gpu.h"
#include "mace/cpu/evaluator.h"
#include "mace/gpu/evaluator.h"
#include "mace/reference/evaluator.h"
#include "test_gpu_support.h"
#include "test_mace_backends.h"

using namespace mace_test;
using namespace mlff;

TEST_CASE("models that the GPU lacks are refused by name, with and without a GPU") {
    const mace_test::Model model(golden_model("p06_att_residual_f32"));
    auto weights = std::make_shared<mace::Weights>(*model.weights);
    weights->radial.cutoff_in_basis = false;
    CHECK(!mace::gpu::why_not_on_gpu(*weights).empty());
    CHECK_THROWS_AS(mace::gpu::make_gpu_evaluator(weights, {}), Error);
}

TEST_CASE("the GPU repeats itself bit for bit, from system to system, and agrees with the CPU") {
    if (!has_gpu()) return;
    for (const char* name : {"p09_l2_ell3", "p04_density_agnesi_zbl", "p07_nonlinear_mh", "p06_att_residual_f32"}) {
        CAPTURE(name);
        const mace_test::Model model(golden_model(name));
        const System large = random_crystal(*model.weights, 3, 150, 13.0),
                     small = random_crystal(*model.weights, 4, 5, 6.0);
        for (const bool is_single : {false, true}) {
            const auto gpu = mace::gpu::make_gpu_evaluator(model.weights, test::backend(is_single));
            const auto cpu = mace::cpu::make_cpu_evaluator(model.weights, test::backend(is_single));
            const Result first_small = evaluate(*gpu, *model.weights, small, 1),
                         first = evaluate(*gpu, *model.weights, large, 1);
            const Result expected = evaluate(*cpu, *model.weights, large, 2);
            const double tolerance = is_single ? kMixed.forces : kDouble.forces;
            check_close(first.forces, expected.forces, tolerance);
            check_close(first.atom_energies, expected.atom_energies,
                        is_single ? kMixed.energy_per_atom : kDouble.energy_per_atom);
            check_close(first.atom_virials, expected.atom_virials, is_single ? kMixed.virial : kDouble.virial);
            for (int repeat = 0; repeat < 3; ++repeat) {
                const Result again = evaluate(*gpu, *model.weights, large, 1);
                CHECK(again.energy == first.energy);
                CHECK(again.forces == first.forces);
                CHECK(again.virial == first.virial);
                CHECK(again.atom_virials == first.atom_virials);
                CHECK(evaluate(*gpu, *model.weights, small, 1).forces == first_small.forces);
            }
        }
    }
}

TEST_CASE("messages made in many small chunks of edges are those made at once") {
    if (!has_gpu()) return;
    for (const char* name : {"p09_l2_ell3", "p04_density_agnesi_zbl"}) {
        CAPTURE(name);
        const mace_test::Model model(golden_model(name));
        const System system = random_crystal(*model.weights, 5, 300, 16.0);
        const BackendOptions options = test::backend(true);
        const Result expected =
            evaluate(*mace::gpu::make_gpu_evaluator(model.weights, options), *model.weights, system, 1);
        const Result exact = evaluate(*mace::cpu::make_cpu_evaluator(model.weights, {}), *model.weights, system, 2);
        for (const int64_t bytes : {200'000, 1'000'000}) {
            CAPTURE(bytes);
            const auto chunked = mace::gpu::make_gpu_evaluator(model.weights, options, bytes);
            for (int repeat = 0; repeat < 3; ++repeat) {
                const Result found = evaluate(*chunked, *model.weights, system, 1);
                CHECK(found.edge_count * 512 >
                      2 * bytes);  // 64 functions of an edge, their slopes, in halves of two: there are several chunks
                check_close(found.forces, exact.forces, kMixed.forces);
                check_close(found.forces, expected.forces, 2e-6);
                check_close(found.atom_energies, expected.atom_energies, 2e-6);
                check_close(found.atom_virials, expected.atom_virials, 1e-5);
            }
        }
    }
}

TEST_CASE("no atoms, one atom and a tiny cell on the GPU") {
    if (!has_gpu()) return;
    const mace_test::Model model(golden_model("p09_l2_ell3"));
    const auto gpu = mace::gpu::make_gpu_evaluator(model.weights, {});
    System system;
    const mace_test::Model gated(golden_model("p07_nonlinear_mh")), attention(golden_model("p06_att_residual_f32"));
    const auto gated_gpu = mace::gpu::make_gpu_evaluator(gated.weights, {}),
               attention_gpu = mace::gpu::make_gpu_evaluator(attention.weights, {});
    for (int repeat = 0; repeat < 3; ++repeat) {  // plain launches, capture, replay
        CHECK(evaluate(*gpu, *model.weights, system, 1).energy == 0);
        CHECK(evaluate(*gated_gpu, *gated.weights, system, 1).energy == 0);
        CHECK(evaluate(*attention_gpu, *attention.weights, system, 1).energy == 0);
    }
    system.numbers = {model.weights->atomic_numbers[0]};
    system.positions = {0.1, 0.2, 0.3};
    const Result one = evaluate(*gpu, *model.weights, system, 1);
    CHECK(std::abs(one.energy - model.evaluate(system).energy) <= 1e-10);
    CHECK(largest_size(one.forces) == 0);
    system.cell = {{{1.9, 0, 0}, {0, 2.0, 0}, {0.3, 0, 2.1}}};
    system.periodic = {true, true, true};
    const Result tiny = evaluate(*gpu, *model.weights, system, 1), expected = model.evaluate(system);
    CHECK(std::abs(tiny.energy - expected.energy) <= 1e-8);
    check_close(tiny.virial, expected.virial, 1e-7);
}

TEST_CASE("forces may be wanted or not, and the charge may change, from call to call") {
    if (!has_gpu()) return;
    const mace_test::Model model(golden_model("p08_omol_like_f32"));
    const auto gpu = mace::gpu::make_gpu_evaluator(model.weights, {});
    System system = random_crystal(*model.weights, 40, 20, 8.0);
    ThreadTeam team(1);
    for (int repeat = 0; repeat < 6; ++repeat) {
        system.charge = repeat / 2 % 2;
        const Result expected = model.evaluate(system);
        double energy = NAN;
        Outputs outputs;
        outputs.energy = &energy;
        gpu->evaluate(system.view(), {}, outputs, team);
        CHECK(std::abs(energy - expected.energy) <= 1e-7);
        check_close(evaluate(*gpu, *model.weights, system, 1).forces, expected.forces, kDouble.forces);
    }
}

TEST_CASE("atoms too close for the tables are refused on the GPU, and the session still works") {
    if (!has_gpu()) return;
    const mace_test::Model model(golden_model("p04_density_agnesi_zbl"));
    const auto gpu = mace::gpu::make_gpu_evaluator(model.weights, {});
    System system;
    system.numbers = {model.weights->atomic_numbers[0], model.weights->atomic_numbers[1]};
    system.positions = {0, 0, 0, 0.12, 0.1, 0};
    CHECK_THROWS_AS(evaluate(*gpu, *model.weights, system, 1), Error);
    system.positions = {0, 0, 0, 1.2, 0.1, 0};
    check_close(evaluate(*gpu, *model.weights, system, 1).forces, model.evaluate(system).forces, kDouble.forces);
}

TEST_CASE("a session chooses the GPU, with descriptors and a skin") {
    if (!has_gpu()) return;
    const auto model = load_model(golden_model("p09_l2_ell3").string());
    SessionOptions options;
    options.neighbor_skin = NeighborSkin::of(1.0);
    Session gpu(model, options);
    options.device = "cpu";
    Session cpu(model, options);
    CHECK(gpu.device_name() == "cuda:0");
    CHECK(gpu.precision() == Precision::mixed);
    options.device = "cuda";
    options.exact_radial = true;
    CHECK_THROWS_AS(Session(model, options), Error);
    options.device = "auto";
    CHECK(Session(model, options).device_name() == "cpu");
    System system = random_crystal(*mace_test::Model(golden_model("p09_l2_ell3")).weights, 12, 40, 9.0);
    const auto width = static_cast<size_t>(model->summary().descriptor_count);
    for (int step = 0; step < 5; ++step) {
        for (double& x : system.positions) x += 0.01;
        std::vector<double> found(40 * width, NAN), expected(40 * width, NAN);
        Results results;
        const SystemView view = system.view();
        results.outputs.descriptors = found.data();
        gpu.evaluate({&view, 1}, {&results, 1});
        results.outputs.descriptors = expected.data();
        cpu.evaluate({&view, 1}, {&results, 1});
        check_close(found, expected, 5e-6);
    }
    CHECK(gpu.neighbor_build_count() == 1);
}

TEST_CASE("a step of MACE that is profiled gives the same bits, and the work of all its stages is known") {
    if (!has_gpu()) return;
    for (const char* name : {"p02_mp0like_l1_c3_f32", "p04_density_agnesi_zbl", "p06_att_residual_f32",
                             "p07_nonlinear_mh", "p08_omol_like_f32", "p09_l2_ell3"})
        for (const bool is_single : {false, true}) {
            CAPTURE(name);
            CAPTURE(is_single);
            const mace_test::Model model(golden_model(name));
            const System system = random_crystal(*model.weights, 41, 40, 10.0);
            const auto gpu = mace::gpu::make_gpu_evaluator(model.weights, test::backend(is_single));
            const Result plain = evaluate(*gpu, *model.weights, system, 1);
            StageProfile profile;
            ThreadTeam team(1);
            team.set_profile(&profile);
            std::vector<double> forces(plain.forces.size(), NAN), virial(9, NAN);
            Outputs outputs;
            outputs.forces = forces.data();
            outputs.virial = virial.data();
            gpu->evaluate(system.view(), {}, outputs, team);
            CHECK(forces == plain.forces);
            CHECK(virial == plain.virial);
            std::set<std::string> forward, reverse;
            for (const StageLog::Sum& sum : profile.device().sums()) {
                if (sum.stage.direction == Direction::neither) continue;  // of the engine
                const std::string stage = stage_text(sum.stage);
                CAPTURE(stage);
                (sum.stage.direction == Direction::forward ? forward : reverse).insert(sum.stage.name);
                CHECK((sum.flops > 0 && std::isfinite(sum.flops)));
                CHECK((sum.bytes > 0 && std::isfinite(sum.bytes)));
            }
            for (const std::string stage : {"harmonics", "contraction", "linear maps", "readouts"})
                CHECK(forward.contains(stage));
            for (const std::string stage : {"harmonics and forces", "contraction", "linear maps"})
                CHECK(reverse.contains(stage));
            for (const std::string stage : {"messages", "moments and messages", "linear map of messages",
                                            "what atoms send", "gate", "self connection of messages"})
                CHECK(forward.contains(stage) == reverse.contains(stage));
        }
}
