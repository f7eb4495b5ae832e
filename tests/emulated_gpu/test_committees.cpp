// SPDX-License-Identifier: MIT
// Committees in one step, on the emulated GPU: mean and spread of PaiNN models of different widths and of a repulsion
// with other numbers for the elements, against each member alone; single systems, batches, domains, and steps that
// repeat.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../unit/backend.h"
#include "../unit/close.h"
#include "gpu/engine/make_combined_step.h"
#include "image_domain.h"
#include "painn/gpu/evaluator.h"
#include "potential/batch_evaluation.h"
#include "potential/domain_evaluation.h"
#include "random_painn.h"
#include "zbl/gpu/step.h"

using namespace mlff;

namespace {

test::System random_atoms(unsigned seed, int count) {
    test::System system;
    test::Random random(seed);
    for (int i = 0; i < count; ++i) {
        system.numbers.push_back(std::vector<int>{1, 6, 8}[static_cast<size_t>(random.below(3))]);
        for (const int place : {i % 3, i / 3 % 3, i / 9}) system.positions.push_back(1.1 * place + random(-0.1, 0.1));
    }
    return system;
}

// Energy, virial, forces, energies and virials of atoms; then the spread of the energy and of each force.
struct Found {
    std::vector<double> all, sigmas;

    explicit Found(size_t atoms) : all(10 + 13 * atoms, NAN), sigmas(1 + atoms, NAN) {}
    Outputs outputs(bool has_spread) {
        const size_t atoms = sigmas.size() - 1;
        Outputs to;
        to.energy = all.data();
        to.virial = all.data() + 1;
        to.forces = all.data() + 10;
        to.atom_energies = to.forces + 3 * atoms;
        to.atom_virials = to.atom_energies + atoms;
        to.sigma_energy_per_atom = has_spread ? sigmas.data() : nullptr;
        to.sigma_forces = has_spread ? sigmas.data() + 1 : nullptr;
        return to;
    }
};

Found evaluate(Evaluator& evaluator, const test::System& system, bool has_spread) {
    ThreadTeam team(1);
    Found found(system.numbers.size());
    evaluator.evaluate(system.view(), {}, found.outputs(has_spread), team);
    return found;
}

// The definitions, in two passes.
Found expected_of(const std::vector<Found>& members, const std::vector<double>& weights) {
    const size_t atoms = members[0].sigmas.size() - 1;
    Found expected(atoms);
    std::fill(expected.all.begin(), expected.all.end(), 0.0);
    std::fill(expected.sigmas.begin(), expected.sigmas.end(), 0.0);
    for (size_t m = 0; m < members.size(); ++m)
        for (size_t i = 0; i < expected.all.size(); ++i) expected.all[i] += weights[m] * members[m].all[i];
    for (size_t m = 0; m < members.size(); ++m) {
        const auto square = [&](size_t i) { return std::pow(members[m].all[i] - expected.all[i], 2); };
        expected.sigmas[0] += weights[m] * square(0);
        for (size_t atom = 0; atom < atoms; ++atom)
            for (size_t k = 0; k < 3; ++k) expected.sigmas[1 + atom] += weights[m] * square(10 + 3 * atom + k);
    }
    for (double& sigma : expected.sigmas) sigma = std::sqrt(sigma);
    expected.sigmas[0] /= static_cast<double>(atoms);
    return expected;
}

}  // namespace

TEST_CASE("a committee on the GPU: mean and spread of its members") {
    const auto first = test::random_weights(3, 32, 2, 6, false), second = test::random_weights(4, 32, 2, 6, false);
    const std::vector<int> elements = {8, 7, 1, 6};  // more than the other members have, and in another order
    const BackendOptions options = test::backend(false);
    const std::vector<MakeStepModel> steps = {painn::gpu::make_step_model(first, options),
                                              zbl::gpu::make_step_model(elements),
                                              painn::gpu::make_step_model(second, options)};
    std::vector<std::unique_ptr<Evaluator>> members;
    members.push_back(painn::gpu::make_gpu_evaluator(first, options));
    members.push_back(zbl::gpu::make_gpu_evaluator(elements, options));
    members.push_back(painn::gpu::make_gpu_evaluator(second, options));
    const std::vector<double> weights = {0.2, 0.5, 0.3};
    const auto committee = gpu::make_combined_step_evaluator(options, steps, joining_as_mean(weights));

    std::vector<test::System> systems;
    std::vector<Found> expected;
    for (const int count : {14, 1, 9}) {
        systems.push_back(random_atoms(11 + static_cast<unsigned>(count), count));
        std::vector<Found> alone;
        for (const auto& member : members) alone.push_back(evaluate(*member, systems.back(), false));
        expected.push_back(expected_of(alone, weights));
    }
    CHECK(expected[0].sigmas[1] > 0.1);
    for (size_t s = 0; s < systems.size(); ++s)
        for (const bool has_spread : {true, false, true}) {  // plain, then as a graph
            CAPTURE(s);
            const Found found = evaluate(*committee, systems[s], has_spread);
            CHECK_ALL_CLOSE(found.all, expected[s].all, 1e-9);
            if (has_spread) CHECK_ALL_CLOSE(found.sigmas, expected[s].sigmas, 1e-9);
            if (has_spread) CHECK(evaluate(*committee, systems[s], true).sigmas == found.sigmas);
        }

    std::vector<Found> found;
    std::vector<SystemView> views;
    std::vector<Outputs> outputs;
    for (const test::System& system : systems) found.emplace_back(system.numbers.size());
    for (size_t s = 0; s < systems.size(); ++s) {
        views.push_back(systems[s].view());
        outputs.push_back(found[s].outputs(s != 1));  // one of them without a spread
    }
    ThreadTeam team(1);
    committee->batches()->evaluate_batch(views, {}, outputs, team);
    for (size_t s = 0; s < systems.size(); ++s) {
        CHECK_ALL_CLOSE(found[s].all, expected[s].all, 1e-9);
        if (s != 1) CHECK_ALL_CLOSE(found[s].sigmas, expected[s].sigmas, 1e-9);
    }
}

TEST_CASE("a committee of many members on the GPU: the spread of a domain, whose ghosts are images of its own atoms") {
    const test::System system = test::random_system(19, 9, 5.0, true);
    test::ImageDomain images(system, 4.0);
    const size_t own = images.own_count, all = images.numbers.size();
    const BackendOptions options = test::backend(false);
    for (const size_t member_count : {size_t{2}, size_t{10}}) {  // in one launch, and in two
        std::vector<MakeStepModel> steps = {zbl::gpu::make_step_model({8, 7, 1, 6})};
        for (size_t m = 1; m < member_count; ++m)
            steps.push_back(
                painn::gpu::make_step_model(test::random_weights(static_cast<unsigned>(m), 32, 2, 6, false), options));
        std::vector<double> weights(member_count, 1.0 / static_cast<double>(member_count + 1));
        weights.back() *= 2;
        const auto committee = gpu::make_combined_step_evaluator(options, steps, joining_as_mean(weights));
        const Found whole = evaluate(*committee, system, true);
        for (int repeat = 0; repeat < 2; ++repeat) {
            const size_t deviation_count = member_count - 1;
            std::vector<double> energies(deviation_count, NAN), forces(3 * all * deviation_count, NAN);
            Outputs outputs;
            outputs.energy_deviations = energies.data();
            outputs.force_deviations = forces.data();
            ThreadTeam team(1);
            committee->domains()->evaluate_domain(images.domain(), {}, outputs, team);
            std::vector<double> sigmas(1 + own, 0.0);
            for (size_t d = 0; d < deviation_count; ++d) {
                const auto begin = forces.begin() + static_cast<std::ptrdiff_t>(3 * all * d);
                std::vector<double> own_forces(begin, begin + static_cast<std::ptrdiff_t>(3 * all));
                images.add_ghosts(own_forces, 3);
                sigmas[0] += energies[d] * energies[d];
                for (size_t i = 0; i < 3 * own; ++i) sigmas[1 + i / 3] += own_forces[i] * own_forces[i];
            }
            for (double& sigma : sigmas) sigma = std::sqrt(sigma);
            sigmas[0] /= static_cast<double>(own);
            CHECK(*std::min_element(whole.sigmas.begin(), whole.sigmas.end()) > 0.01);
            CHECK_ALL_CLOSE(sigmas, whole.sigmas, 1e-9);
        }
    }
}

TEST_CASE("members that agree have no spread on the GPU") {
    const auto weights = test::random_weights(5, 32, 1, 6, false);
    const BackendOptions options = test::backend(false);
    const auto step = painn::gpu::make_step_model(weights, options);
    const auto alone = painn::gpu::make_gpu_evaluator(weights, options);
    const auto committee =
        gpu::make_combined_step_evaluator(options, {step, step, step}, joining_as_mean({0.3, 0.3, 0.4}));
    const test::System system = random_atoms(7, 10);
    const Found found = evaluate(*committee, system, true);
    CHECK(found.all == evaluate(*alone, system, false).all);
    CHECK(found.sigmas == std::vector<double>(11, 0.0));
}
