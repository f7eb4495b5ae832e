// SPDX-License-Identifier: MIT
// D3 on the emulated GPU against its plain loops, for systems of all kinds of periodicity.
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "../unit/backend.h"
#include "../unit/close.h"
#include "core/error.h"
#include "dispersion/gpu/step.h"
#include "dispersion/reference/evaluator.h"
#include "dispersion/tables/tables.h"
#include "gpu/engine/make_combined_step.h"
#include "image_domain.h"
#include "painn/gpu/evaluator.h"
#include "potential/domain_evaluation.h"
#include "random_painn.h"

using namespace mlff;

namespace {

// `atoms` on a shaken grid of points 2.2 angstrom apart.
test::System shaken_grid(int atoms, const std::vector<int>& elements, unsigned seed) {
    test::System system;
    test::Random random(seed);
    for (int i = 0; i < atoms; ++i) {
        system.numbers.push_back(elements[static_cast<size_t>(random.below(static_cast<int>(elements.size())))]);
        for (const int place : {i % 3, i / 3 % 3, i / 9}) system.positions.push_back(2.2 * place + random(-0.3, 0.3));
    }
    return system;
}

// Energy, virial, forces, energies and virials of atoms.
std::vector<double> evaluate(Evaluator& evaluator, const SystemView& system) {
    ThreadTeam team(1);
    const auto atoms = static_cast<size_t>(system.atom_count);
    std::vector<double> all(10 + 13 * atoms, NAN);
    Outputs outputs;
    outputs.energy = all.data();
    outputs.virial = all.data() + 1;
    outputs.forces = all.data() + 10;
    outputs.atom_energies = outputs.forces + 3 * atoms;
    outputs.atom_virials = outputs.atom_energies + atoms;
    evaluator.evaluate(system, {}, outputs, team);
    return all;
}

const std::vector<int> kElements = {1, 6, 8, 26, 83};

std::shared_ptr<const dispersion::Tables> tables_for(const dispersion::Method& method) {
    return std::make_shared<dispersion::Tables>(dispersion::make_tables(kElements, method));
}

dispersion::Method method_of(const char* functional, dispersion::DampingKind kind, bool is_smooth) {
    return {.damping = dispersion::damping_of_functional(functional, kind), .is_smooth = is_smooth};
}

}  // namespace

TEST_CASE("D3 on the GPU gives the numbers of its plain loops") {
    struct Case {
        const char* name;
        int atoms;
        std::vector<int> elements;
        Mat3 cell;
        std::array<bool, 3> periodic;
    };
    const std::vector<Case> cases = {
        {"a molecule", 13, {1, 6, 8}, {}, {}},
        {"more than a tile", 45, {1, 8}, {}, {}},
        {"seven references", 4, {83, 26}, {}, {}},
        {"a crystal", 3, {26, 8}, {{{{6.9, 0.3, 0}}, {{-0.4, 7.2, 0.8}}, {{0.1, 0, 5.1}}}}, {true, true, true}},
        {"a slab", 9, {6, 8, 1}, {{{{7.1, 0, 0}}, {{2.1, 8.0, 0}}, {{0, 0, 0}}}}, {true, true, false}},
        {"a wire", 9, {6, 1}, {{{{0, 0, 0}}, {{0.3, 7.4, 0.2}}, {{0, 0, 0}}}}, {false, true, false}},
        {"one atom", 1, {8}, {}, {}},
    };
    unsigned seed = 1;
    for (const Case& one : cases) {
        CAPTURE(one.name);
        test::System system = shaken_grid(one.atoms, one.elements, seed++);
        system.cell = one.cell;
        for (size_t k = 0; k < 3; ++k) system.positions[k] += 3 * one.cell[1][k];  // an atom outside of the cell
        SystemView view = system.view();
        view.periodic = one.periodic;
        for (const auto& method : {method_of("pbe", dispersion::DampingKind::bj, false),
                                   method_of("b3lyp", dispersion::DampingKind::zero, true)}) {
            const auto tables = tables_for(method);
            const auto plain = dispersion::reference::make_reference_evaluator(tables);
            const std::vector<double> expected = evaluate(*plain, view);
            double largest = 0;
            for (const double x : expected) largest = std::max(largest, std::abs(x));
            if (one.atoms > 1) CHECK(largest > 1e-3);
            for (const bool is_mixed : {false, true}) {
                CAPTURE(is_mixed);
                const auto evaluator = dispersion::gpu::make_gpu_evaluator(tables, test::backend(is_mixed));
                for (int repeat = 0; repeat < 2; ++repeat)
                    CHECK_ALL_CLOSE(evaluate(*evaluator, view), expected, (is_mixed ? 1e-5 : 1e-11) * largest);
            }
        }
    }
}

TEST_CASE("results without virials, and energies alone, are the same") {
    const test::System system = shaken_grid(40, {1, 6, 8}, 77);
    for (const auto& method :
         {method_of("pbe", dispersion::DampingKind::bj, false), method_of("pbe", dispersion::DampingKind::bj, true),
          method_of("b3lyp", dispersion::DampingKind::zero, false)}) {
        const auto evaluator = dispersion::gpu::make_gpu_evaluator(tables_for(method), test::backend(false));
        const std::vector<double> expected = evaluate(*evaluator, system.view());
        ThreadTeam team(1);
        double energy = NAN;
        std::vector<double> forces(3 * system.numbers.size(), NAN);
        Outputs outputs;
        outputs.energy = &energy;
        evaluator->evaluate(system.view(), {}, outputs, team);
        CHECK(test::is_close(energy, expected[0], 1e-12));
        energy = NAN;
        outputs.forces = forces.data();
        evaluator->evaluate(system.view(), {}, outputs, team);
        CHECK(test::is_close(energy, expected[0], 1e-12));
        CHECK_ALL_CLOSE(forces, std::vector<double>(expected.begin() + 10, expected.begin() + 10 + 120), 1e-12);
    }
}

TEST_CASE("D3 on the GPU computes the pairs of many tiles once, and repeats its bits") {
    struct Case {
        const char* name;
        int atoms;
        std::vector<int> elements;
        std::array<bool, 3> periodic;
    };
    const std::vector<Case> cases = {{"water in a small cell", 243, {1, 1, 8}, {true, true, true}},
                                     {"more references in a wire", 117, {1, 6, 8}, {false, false, true}},
                                     {"a droplet", 360, {1, 1, 8}, {}}};
    unsigned seed = 31;
    for (const Case& one : cases) {
        CAPTURE(one.name);
        test::System system = shaken_grid(one.atoms, one.elements, seed++);
        const double length = 2.2 * (one.atoms / 9);
        system.cell = {{{{12, 0.5, 0}}, {{-1, 14, 0}}, {{0, 2, length}}}};
        SystemView view = system.view();
        view.periodic = one.periodic;
        const auto tables = tables_for(method_of("pbe", dispersion::DampingKind::bj, false));
        const std::vector<double> expected = evaluate(*dispersion::reference::make_reference_evaluator(tables), view);
        CHECK(std::abs(expected[0]) > 1);
        for (const bool is_mixed : {false, true}) {
            CAPTURE(is_mixed);
            const double tolerance = (is_mixed ? 1e-6 : 1e-12) * std::abs(expected[0]);
            const auto evaluator = dispersion::gpu::make_gpu_evaluator(tables, test::backend(is_mixed));
            const std::vector<double> found = evaluate(*evaluator, view);
            CHECK_ALL_CLOSE(found, expected, tolerance);
            const auto forces = std::vector<double>(expected.begin() + 10, expected.begin() + 10 + 3 * one.atoms);
            CHECK_ALL_CLOSE(std::vector<double>(found.begin() + 10, found.begin() + 10 + 3 * one.atoms), forces,
                            is_mixed ? 1e-6 : 1e-12);
            // Without virials of atoms, the virial is made of other sums.
            ThreadTeam team(1);
            std::vector<double> whole(10, NAN), first;
            Outputs outputs;
            outputs.energy = whole.data();
            outputs.virial = whole.data() + 1;
            for (const bool is_backwards : {false, true}) {
                if (is_backwards && !is_mixed) continue;
                CAPTURE(is_backwards);
                emulated::runs_last_block_first = is_backwards;
                evaluator->evaluate(view, {}, outputs, team);
                CHECK_ALL_CLOSE(whole, std::vector<double>(expected.begin(), expected.begin() + 10), tolerance);
                if (is_backwards) {
                    CHECK(evaluate(*evaluator, view) == found);
                    CHECK(whole == first);
                }
                first = whole;
            }
            emulated::runs_last_block_first = false;
        }
    }
}

TEST_CASE("D3 of a domain with ghosts gives what the periodic system gives") {
    test::System system = shaken_grid(45, {1, 6, 8}, 91);  // two tiles
    system.is_periodic = true;
    for (double& x : system.positions) x *= 1.6;
    system.cell = {{{{14, 0, 0}}, {{1, 15, 0}}, {{0, -1, 18}}}};
    const auto tables = tables_for(method_of("pbe", dispersion::DampingKind::bj, false));
    for (const bool is_mixed : {false, true}) {
        CAPTURE(is_mixed);
        const auto evaluator = dispersion::gpu::make_gpu_evaluator(tables, test::backend(is_mixed));
        const std::vector<double> expected = evaluate(*evaluator, system.view());
        test::ImageDomain images(system, 31.8);
        Domain domain = images.domain();
        const size_t own = images.own_count, all = images.numbers.size();
        CHECK(all > 50 * own);
        std::vector<double> found(10 + own, NAN), forces(3 * all, NAN), virials(9 * all, NAN);
        Outputs outputs;
        outputs.energy = found.data();
        outputs.virial = found.data() + 1;
        outputs.atom_energies = found.data() + 10;
        outputs.forces = forces.data();
        outputs.atom_virials = virials.data();
        ThreadTeam team(1);
        evaluator->domains()->evaluate_domain(domain, {}, outputs, team);
        CHECK_ALL_CLOSE(std::vector<double>(forces.begin() + static_cast<int64_t>(3 * own), forces.end()),
                        std::vector<double>(3 * (all - own), 0.0), 0);
        images.add_ghosts(forces, 3);
        images.add_ghosts(virials, 9);
        found.insert(found.begin() + 10, forces.begin(), forces.end());
        found.insert(found.end(), virials.begin(), virials.end());
        CHECK_ALL_CLOSE(found, expected, is_mixed ? 1e-5 : 1e-11);

        // The virial alone: that of own atoms is half of each pair with a ghost.
        std::vector<double> whole(9, NAN);
        Outputs virial_only;
        virial_only.virial = whole.data();
        evaluator->domains()->evaluate_domain(domain, {}, virial_only, team);
        CHECK_ALL_CLOSE(whole, std::vector<double>(expected.begin() + 1, expected.begin() + 10),
                        is_mixed ? 1e-5 : 1e-11);
    }
}

TEST_CASE("D3 on the GPU refuses atoms at the same place, and cells with too many images") {
    const auto tables = tables_for(method_of("pbe", dispersion::DampingKind::bj, false));
    const auto error_of = [&](const SystemView& system, bool is_mixed) -> std::string {
        const auto evaluator = dispersion::gpu::make_gpu_evaluator(tables, test::backend(is_mixed));
        try {
            evaluate(*evaluator, system);
        } catch (const Error& error) {
            CHECK(error.status() == Status::system);
            return error.what();
        }
        return "";
    };
    test::System system = shaken_grid(40, {1, 6, 8}, 3);
    for (size_t k = 0; k < 3; ++k) system.positions[3 * 37 + k] = system.positions[3 * 5 + k];
    for (const bool is_mixed : {false, true})
        CHECK(error_of(system.view(), is_mixed) == "two atoms are at the same place");
    const test::System atom = shaken_grid(1, {6}, 4);
    SystemView tiny = atom.view();
    tiny.periodic = {true, true, true};
    for (size_t k = 0; k < 3; ++k) tiny.cell[k][k] = 0.2;
    CHECK(error_of(tiny, false).find("the cell is so small") == 0);
}

TEST_CASE("D3 in a sum keeps the edges of the other term") {
    const auto weights = test::random_weights(3, 32, 2, 6, false);
    const BackendOptions options = test::backend(false);
    const auto tables = tables_for(method_of("pbe", dispersion::DampingKind::bj, false));
    const auto painn = painn::gpu::make_gpu_evaluator(weights, options),
               d3 = dispersion::gpu::make_gpu_evaluator(tables, options);
    const auto painn_step = painn::gpu::make_step_model(weights, options),
               d3_step = dispersion::gpu::make_step_model(tables, options);
    const test::System system = shaken_grid(14, {1, 6, 8}, 5);
    std::vector<double> expected = evaluate(*painn, system.view());
    const std::vector<double> dispersion = evaluate(*d3, system.view());
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += dispersion[i];
    for (const bool d3_is_first : {false, true}) {
        CAPTURE(d3_is_first);
        const auto sum = gpu::make_combined_step_evaluator(
            options, d3_is_first ? std::vector{d3_step, painn_step} : std::vector{painn_step, d3_step},
            joining_as_sum(2));
        for (int repeat = 0; repeat < 2; ++repeat) CHECK_ALL_CLOSE(evaluate(*sum, system.view()), expected, 1e-9);
    }
}
