// SPDX-License-Identifier: MIT
// The GPU backend of SevenNet and Nequix: bits, chunks of edges, systems of any size. test_goldens.cpp has its numbers,
// test_domains.cpp its domains. Most tests need a GPU.
#include <doctest/doctest.h>

#include "backend.h"
#include "core/error.h"
#include "nequip/cpu/evaluator.h"
#include "nequip/gpu/evaluator.h"
#include "test_gpu_support.h"
#include "test_mace_backends.h"
#include "test_nequip_support.h"

using namespace mace_test;
using namespace mlff;

namespace {

// Those of the repository, and larger ones where they are to be found: several layers, features up to l = 3.
std::vector<std::string> tested_models() {
    std::vector<std::string> names = {"p10_three_modals_all_flags", "p11_v093_old_signs_f32", "n03_lmax1_two_layers"};
    for (const char* name : {"p01_sevennet0_like_f32", "p02_l3i5_like_f32", "p04_nequip_lmax1_parity"})
        if (nequip_test::goldens().contains(name)) names.emplace_back(name);
    return names;
}
std::shared_ptr<const nequip::Weights> weights_of(const std::string& name) {
    return std::make_shared<const nequip::Weights>(nequip_test::load(nequip_test::goldens().at(name)));
}

}  // namespace

TEST_CASE("SevenNet and Nequix that the GPU lacks are refused by name, with and without a GPU") {
    auto weights = std::make_shared<nequip::Weights>(*weights_of("p08_bias_fcn_readout"));
    DenseLayer wide;
    wide.in_width = wide.out_width = 1 << 14;
    weights->readout.layers.insert(weights->readout.layers.begin(), wide);
    CHECK(nequip::gpu::why_not_on_gpu(*weights) != "");
    CHECK_THROWS_AS(nequip::gpu::make_gpu_evaluator(weights, {}), Error);
}

TEST_CASE("SevenNet and Nequix on the GPU repeat themselves bit for bit, and agree with the CPU") {
    if (!has_gpu()) return;
    for (const std::string& name : tested_models()) {
        CAPTURE(name);
        const auto weights = weights_of(name);
        const System large = random_crystal(*weights, 3, 150, 13.0), small = random_crystal(*weights, 4, 5, 6.0);
        for (const bool is_single : {false, true}) {
            CAPTURE(is_single);
            const auto gpu = nequip::gpu::make_gpu_evaluator(weights, test::backend(is_single));
            const auto cpu = nequip::cpu::make_cpu_evaluator(weights, test::backend(is_single));
            const Result first_small = evaluate(*gpu, *weights, small, 1), first = evaluate(*gpu, *weights, large, 1);
            const Result expected = evaluate(*cpu, *weights, large, 2);
            const Tolerance& tolerance = is_single ? kMixed : kDouble;
            check_close(first.forces, expected.forces, tolerance.forces);
            check_close(first.atom_energies, expected.atom_energies, tolerance.energy_per_atom);
            check_close(first.atom_virials, expected.atom_virials, tolerance.virial);
            for (int repeat = 0; repeat < 3; ++repeat) {
                const Result again = evaluate(*gpu, *weights, large, 1);
                CHECK(again.energy == first.energy);
                CHECK(again.forces == first.forces);
                CHECK(again.virial == first.virial);
                CHECK(again.atom_virials == first.atom_virials);
                CHECK(evaluate(*gpu, *weights, small, 1).forces == first_small.forces);
            }
        }
    }
}

TEST_CASE("SevenNet: messages made in many small chunks of edges are those made at once") {
    if (!has_gpu()) return;
    for (const std::string& name : tested_models()) {
        CAPTURE(name);
        const auto weights = weights_of(name);
        const System system = random_crystal(*weights, 5, 300, 16.0);
        const BackendOptions options = test::backend(true);
        const Result expected = evaluate(*nequip::gpu::make_gpu_evaluator(weights, options), *weights, system, 1);
        const Result exact = evaluate(*nequip::cpu::make_cpu_evaluator(weights, {}), *weights, system, 2);
        for (const int64_t bytes : {200'000, 1'000'000}) {
            CAPTURE(bytes);
            const auto chunked = nequip::gpu::make_gpu_evaluator(weights, options, bytes);
            const Result found = evaluate(*chunked, *weights, system, 1);
            CHECK(found.edge_count * 512 > 2 * bytes);  // functions and slopes of an edge: there are several chunks
            check_close(found.forces, exact.forces, kMixed.forces);
            check_close(found.forces, expected.forces, 3e-6);
            check_close(found.atom_energies, expected.atom_energies, 3e-6);
            check_close(found.atom_virials, expected.atom_virials, 1e-5);
            CHECK(evaluate(*chunked, *weights, system, 1).forces == found.forces);
        }
    }
}

TEST_CASE("SevenNet and Nequix on the GPU: no atoms, one atom, a tiny cell, atoms too close") {
    if (!has_gpu()) return;
    for (const char* name : {"p10_three_modals_all_flags", "n03_lmax1_two_layers"}) {
        CAPTURE(name);
        const auto weights = weights_of(name);
        const auto gpu = nequip::gpu::make_gpu_evaluator(weights, {});
        const auto cpu = nequip::cpu::make_cpu_evaluator(weights, {});
        System system;
        for (int repeat = 0; repeat < 3; ++repeat)  // plain launches, capture, replay
            CHECK(evaluate(*gpu, *weights, system, 1).energy == 0);
        system.numbers = {weights->atomic_numbers[0]};
        system.positions = {0.1, 0.2, 0.3};
        const Result one = evaluate(*gpu, *weights, system, 1);
        CHECK(std::abs(one.energy - evaluate(*cpu, *weights, system, 1).energy) <= 1e-10);
        CHECK(largest_size(one.forces) == 0);
        system.cell = {{{1.9, 0, 0}, {0, 2.0, 0}, {0.3, 0, 2.1}}};
        system.periodic = {true, true, true};
        const Result tiny = evaluate(*gpu, *weights, system, 1), expected = evaluate(*cpu, *weights, system, 1);
        CHECK(std::abs(tiny.energy - expected.energy) <= 1e-8 * std::max(1.0, std::abs(expected.energy)));
        check_close(tiny.virial, expected.virial, 1e-7);
        system = {};
        system.numbers = {weights->atomic_numbers[0], weights->atomic_numbers[0]};
        system.positions = {0, 0, 0, 0, 0, 0.3};
        CHECK_THROWS_AS(evaluate(*gpu, *weights, system, 1), Error);
        system.positions[5] = 1.5;
        check_close(evaluate(*gpu, *weights, system, 1).forces, evaluate(*cpu, *weights, system, 1).forces, 1e-7);
    }
}
