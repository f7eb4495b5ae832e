// SPDX-License-Identifier: MIT
// Sums of terms in one step, on the emulated GPU: PaiNN and a repulsion with a shorter cutoff and other numbers for the
// elements, against each of them alone.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "../unit/backend.h"
#include "../unit/close.h"
#include "gpu/engine/make_combined_step.h"
#include "painn/gpu/evaluator.h"
#include "random_painn.h"
#include "zbl/gpu/step.h"

using namespace mlff;

TEST_CASE("a sum of terms on the GPU is the sum of their results") {
    const auto weights = test::random_weights(3, 32, 2, 6, false);
    const std::vector<int> elements = {8, 7, 1, 6};  // more than the other term has, and in another order
    const BackendOptions options = test::backend(false);
    const auto painn = painn::gpu::make_gpu_evaluator(weights, options),
               zbl = zbl::gpu::make_gpu_evaluator(elements, options);
    const auto painn_step = painn::gpu::make_step_model(weights, options),
               zbl_step = zbl::gpu::make_step_model(elements);
    for (const bool zbl_is_first : {false, true}) {
        CAPTURE(zbl_is_first);
        const auto sum = gpu::make_combined_step_evaluator(
            options, zbl_is_first ? std::vector{zbl_step, painn_step} : std::vector{painn_step, zbl_step},
            joining_as_sum(2));
        test::System system;
        test::Random random(11);
        for (int i = 0; i < 14; ++i) {
            system.numbers.push_back(std::vector<int>{1, 6, 8}[static_cast<size_t>(random.below(3))]);
            for (const int place : {i % 3, i / 3 % 3, i / 9})
                system.positions.push_back(1.1 * place + random(-0.1, 0.1));
        }
        ThreadTeam team(1);
        const size_t atoms = system.numbers.size();
        const auto evaluate = [&](Evaluator& evaluator) {  // energy, virial, forces, energies and virials of atoms
            std::vector<double> all(10 + 13 * atoms, NAN);
            Outputs outputs;
            outputs.energy = all.data();
            outputs.virial = all.data() + 1;
            outputs.forces = all.data() + 10;
            outputs.atom_energies = outputs.forces + 3 * atoms;
            outputs.atom_virials = outputs.atom_energies + atoms;
            evaluator.evaluate(system.view(), {}, outputs, team);
            return all;
        };
        std::vector<double> expected = evaluate(*painn);
        const std::vector<double> repulsion = evaluate(*zbl);
        CHECK(repulsion[0] > 1);
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += repulsion[i];
        for (int repeat = 0; repeat < 2; ++repeat) CHECK_ALL_CLOSE(evaluate(*sum), expected, 1e-9);
    }
}
