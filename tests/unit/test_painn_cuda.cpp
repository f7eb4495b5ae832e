// SPDX-License-Identifier: MIT
// PaiNN on the GPU against the reference. Tests that need a GPU pass without one, unless MLFF_REQUIRE_GPU is set (scripts/test --gpu).
#include <doctest/doctest.h>

#include "core/error.h"
#include "neighbors/joined_edges.h"
#include "painn/cuda/evaluator.h"
#include "test_gpu_support.h"
#include "test_painn_support.h"

using namespace mlff;
using namespace painn_test;

namespace {

struct Limits {
    double energy, forces, virial;
};
Limits limits(bool is_mixed) { return is_mixed ? Limits{1e-5, 1e-5, 1e-4} : Limits{1e-9, 1e-8, 1e-8}; }

std::unique_ptr<Evaluator> on_gpu(const std::shared_ptr<const painn::Weights>& weights, bool is_mixed, double skin = 1) {
    painn::cuda::CudaOptions options;
    options.is_mixed = is_mixed;
    options.neighbor_skin = skin;
    return painn::cuda::make_cuda_evaluator(weights, options);
}

void compare(const Result& found, const Result& expected, const Limits& limit) {
    const double atoms = std::max<double>(1, static_cast<double>(expected.atom_energies.size()));
    CHECK(std::abs(found.energy - expected.energy) <= limit.energy * atoms);
    check_all(found.atom_energies, expected.atom_energies, limit.energy);
    check_all(found.forces, expected.forces, limit.forces);
    check_all(found.virial, expected.virial, limit.virial);
    check_all(found.atom_virials, expected.atom_virials, limit.virial);
}

System molecule(const painn::Weights& weights, unsigned seed, size_t atoms) {
    System system = random_crystal(weights, seed, atoms, 7.0);
    system.cell = {};
    system.periodic = {false, false, false};
    return system;
}

}  // namespace

TEST_CASE("a width that the GPU lacks is refused by name, with and without a GPU") {
    Shape shape;
    shape.hidden = 96;
    const auto weights = shared_weights(shape);
    CHECK(!painn::cuda::why_not_on_gpu(*weights).empty());
    CHECK_THROWS_AS(painn::cuda::make_cuda_evaluator(weights, {}), Error);
}

TEST_CASE("PaiNN on the GPU is the reference, in all widths, and repeats its bits") {
    if (!has_gpu()) return;
    for (const auto& [hidden, blocks, radial] : {std::array{32, 2, 8}, std::array{64, 3, 20}, std::array{128, 3, 20}, std::array{256, 1, 33}, std::array{32, 4, 64}}) {
        CAPTURE(hidden);
        Shape shape;
        shape.hidden = hidden;
        shape.blocks = blocks;
        shape.radial = radial;
        shape.cutoff = 5;
        shape.has_repulsion = blocks != 2;
        const auto weights = shared_weights(shape);
        std::vector<System> systems = {random_crystal(*weights, 3, 90, 11.0), molecule(*weights, 4, 17), random_crystal(*weights, 5, 2, 3.0), molecule(*weights, 6, 1),
                                       random_crystal(*weights, 7, 400, 18.0)};
        for (const bool is_mixed : {false, true}) {
            CAPTURE(is_mixed);
            const auto gpu = on_gpu(weights, is_mixed);
            std::vector<Result> first;
            for (size_t i = 0; i < systems.size(); ++i) {
                CAPTURE(i);
                first.push_back(mace_test::evaluate(*gpu, *weights, systems[i], 1));
                compare(first.back(), evaluate_reference(weights, systems[i], 2), limits(is_mixed));
            }
            for (int repeat = 0; repeat < 3; ++repeat)
                for (size_t i = 0; i < systems.size(); ++i) {
                    const Result again = mace_test::evaluate(*gpu, *weights, systems[i], 1);
                    CHECK(again.energy == first[i].energy);
                    CHECK(again.forces == first[i].forces);
                    CHECK(again.atom_virials == first[i].atom_virials);
                }
        }
    }
}

TEST_CASE("a walk of PaiNN with a skin stays with the reference") {
    if (!has_gpu()) return;
    const auto weights = shared_weights({64, 2, 12, 4.5, {1, 6, 8}, true, 9});
    System system = random_crystal(*weights, 8, 60, 9.5);
    for (const bool is_mixed : {false, true}) {
        const auto gpu = on_gpu(weights, is_mixed);
        std::mt19937 random(5);
        std::uniform_real_distribution<double> uniform(-0.06, 0.06);
        for (int step = 0; step < 12; ++step) {
            for (double& x : system.positions) x += uniform(random);
            compare(mace_test::evaluate(*gpu, *weights, system, 1), evaluate_reference(weights, system, 2), limits(is_mixed));
        }
        CHECK(gpu->neighbor_build_count() < 12);
    }
}

TEST_CASE("no atoms, and a batch of molecules as one step") {
    if (!has_gpu()) return;
    const auto weights = shared_weights({128, 3, 20, 5, {1, 6, 8}, true, 2});
    const auto gpu = on_gpu(weights, true);
    for (int repeat = 0; repeat < 3; ++repeat) CHECK(mace_test::evaluate(*gpu, *weights, System{}, 1).energy == 0);
    std::vector<System> systems;
    for (unsigned i = 0; i < 12; ++i) systems.push_back(i % 3 == 0 ? random_crystal(*weights, i, 12, 6.5) : molecule(*weights, i, 1 + i));
    std::vector<Result> found(systems.size());
    std::vector<SystemView> views;
    std::vector<Outputs> outputs;
    for (size_t i = 0; i < systems.size(); ++i) {
        found[i].forces.assign(systems[i].positions.size(), NAN);
        found[i].virial.assign(9, NAN);
        views.push_back(systems[i].view());
        Outputs wanted;
        wanted.energy = &found[i].energy;
        wanted.forces = found[i].forces.data();
        wanted.virial = found[i].virial.data();
        outputs.push_back(wanted);
        CHECK(gpu->can_join(views.front(), views.back()));
    }
    // What a session does: the edges of each system, numbered through.
    NeighborOptions options;
    options.cutoff = weights->cutoff;
    options.want_reverse = true;
    ThreadTeam team(1);
    JoinedEdges joined;
    std::vector<std::unique_ptr<NeighborList>> lists;
    for (const SystemView& view : views) {
        lists.push_back(std::make_unique<NeighborList>(options));
        lists.back()->update(view, team);
        joined.append(lists.back()->edges());
    }
    for (int repeat = 0; repeat < 3; ++repeat) {
        gpu->evaluate_joined(views, joined.edges(), outputs, team);
        for (size_t i = 0; i < systems.size(); ++i) {
            CAPTURE(i);
            const Result expected = evaluate_reference(weights, systems[i]);
            CHECK(std::abs(found[i].energy - expected.energy) <= 1e-5 * static_cast<double>(systems[i].numbers.size()));
            check_all(found[i].forces, expected.forces, 1e-5);
            check_all(found[i].virial, expected.virial, 1e-4);
        }
    }
}
