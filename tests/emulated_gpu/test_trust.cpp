// SPDX-License-Identifier: MIT
// The trust meter in steps on the emulated GPU, against the one of the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "../unit/backend.h"
#include "../unit/close.h"
#include "../unit/trust_meters.h"
#include "gpu/engine/make_combined_step.h"
#include "gpu/engine/trust_step.h"
#include "neighbors/neighbor_list.h"
#include "painn/gpu/evaluator.h"
#include "potential/batch_evaluation.h"
#include "potential/device_evaluation.h"
#include "random_painn.h"
#include "trust/measure.h"
#include "zbl/gpu/step.h"

using namespace mlff;
using test::Numbers;

namespace {

struct Measured {
    Numbers expected_errors, novelties;
    explicit Measured(size_t atoms) : expected_errors(atoms, NAN), novelties(atoms, NAN) {}
};

Measured measure_on_cpu(const TrustMeter& meter, const test::System& system, const Numbers& descriptors,
                        double cutoff) {
    ThreadTeam team(1);
    NeighborOptions options;
    options.cutoff = cutoff;
    NeighborList list(options);
    list.update(system.view(), team);
    Measured measured(system.numbers.size());
    TrustMeasurement().measure(meter, system.numbers.data(), descriptors.data(), list.edges(),
                               measured.expected_errors.data(), measured.novelties.data(), team);
    return measured;
}

void check_same(const Measured& found, const Measured& expected, double tolerance) {
    const auto relative = [](const Numbers& numbers, const Numbers& reference) {
        Numbers ratios(numbers.size());
        for (size_t i = 0; i < numbers.size(); ++i) ratios[i] = numbers[i] / reference.at(i);
        return ratios;
    };
    const Numbers ones(expected.novelties.size(), 1.0);
    REQUIRE(found.novelties.size() == ones.size());
    CHECK_ALL_CLOSE(relative(found.expected_errors, expected.expected_errors), ones, tolerance);
    CHECK_ALL_CLOSE(relative(found.novelties, expected.novelties), ones, tolerance);
}

}  // namespace

TEST_CASE("the kernels of the trust meter give the numbers of the CPU") {
    struct Case {
        int descriptors, components;
    };
    bool had_inside = false, had_outside = false;
    for (const Case& sizes : {Case{1, 1}, Case{16, 5}, Case{64, 32}, Case{130, 24}})
        for (const int atom_count : {0, 1, 23, 150})
            for (const bool is_periodic : {true, false}) {
                CAPTURE(sizes.descriptors);
                CAPTURE(atom_count);
                test::Random random(static_cast<unsigned>(31 * sizes.descriptors + atom_count));
                const double box = 2.1 * std::cbrt(atom_count + 1);
                test::System system = test::random_system(7, atom_count, box, is_periodic);
                if (atom_count > 1 && !is_periodic) system.positions[0] += 50;  // without neighbours
                const TrustMeter meter =
                    test::random_trust_meter(sizes.descriptors, {1, 6}, 1, 5, sizes.components);  // 8: not seen
                Numbers descriptors(static_cast<size_t>(atom_count) * static_cast<size_t>(sizes.descriptors));
                for (double& number : descriptors) number = random(-1.7, 1.7);
                constexpr double kCutoff = 4;
                const Measured expected = measure_on_cpu(meter, system, descriptors, kCutoff);

                ThreadTeam team(1);
                NeighborOptions options;
                options.cutoff = kCutoff;
                NeighborList list(options);
                list.update(system.view(), team);
                const Edges& edges = list.edges();
                gpu::StepModelFacts facts;
                facts.atomic_numbers = {8, 6, 1};
                facts.descriptor_count = sizes.descriptors;
                std::vector<int32_t> elements;
                for (const int z : system.numbers) elements.push_back(z == 8 ? 0 : z == 6 ? 1 : 2);
                gpu::StepEdges step_edges;
                step_edges.atom_count = static_cast<int32_t>(atom_count);
                step_edges.capacity = edges.edge_count;
                step_edges.first = edges.first;
                step_edges.sender = edges.sender;
                step_edges.distance = edges.distance;
                step_edges.elements = elements.data();
                gpu::TrustStep trust(meter, facts, nullptr);
                gpu::StepResults results(sizes.descriptors, 0);
                gpu::StepSize size;
                size.atoms = atom_count;
                size.wanted.trust = true;
                gpu::BufferList buffers;
                results.list_buffers(buffers, size);
                trust.list_buffers(buffers, size);
                buffers.reserve(1);
                results.descriptors.upload(descriptors.data(), static_cast<int64_t>(descriptors.size()), "a test",
                                           nullptr);
                TrustReading largest;
                for (const double error : expected.expected_errors)
                    largest.max_expected_error = std::max(largest.max_expected_error, error);
                for (size_t atom = 0; atom < expected.novelties.size(); ++atom)
                    largest.outside_count +=
                        trust::is_outside(meter.alarm_error, expected.expected_errors[atom], expected.novelties[atom]);
                had_outside |= largest.outside_count > 0;
                had_inside |= largest.outside_count < atom_count;
                for (int repeat = 0; repeat < 2; ++repeat) {
                    trust.enqueue(step_edges, results, nullptr);
                    Measured found(static_cast<size_t>(atom_count));
                    results.expected_errors.download(found.expected_errors.data(), atom_count, nullptr);
                    results.novelties.download(found.novelties.data(), atom_count, nullptr);
                    check_same(found, expected, 1e-6);
                    const TrustReading& reading = *trust.enqueue_reading(atom_count, results, nullptr);
                    CHECK(reading.outside_count == largest.outside_count);
                    CHECK(std::abs(reading.max_expected_error - largest.max_expected_error) <=
                          1e-6 * largest.max_expected_error);
                }
            }
    CHECK(had_inside);
    CHECK(had_outside);
}

TEST_CASE("what an atom is expected to miss by stays NaN in the sum over atoms") {
    gpu::TrustSum sum, other;
    sum.merge({0.5, 1});
    other.merge({NAN, 0});
    other.merge({2, 1});
    CHECK(std::isnan(other.max_expected_error));
    sum.merge(other);
    CHECK(std::isnan(sum.max_expected_error));
    CHECK(sum.outside_count == 2);
}

TEST_CASE("steps on the GPU measure trust, alone, in sums, in batches and in device memory") {
    const auto weights = test::random_weights(3, 32, 2, 6, false);
    BackendOptions options = test::backend(false);
    options.neighbor_skin = 0.4;
    const auto meter =
        std::make_shared<const TrustMeter>(test::random_trust_meter(32, {1, 6}, 1.5, 9, 12));  // 8: not seen
    ThreadTeam team(1);
    const auto descriptors_of = [&](Evaluator& evaluator, const test::System& system) {
        Numbers descriptors(32 * system.numbers.size(), NAN);
        Outputs outputs;
        outputs.descriptors = descriptors.data();
        evaluator.evaluate(system.view(), {}, outputs, team);
        return descriptors;
    };
    const auto plain = painn::gpu::make_gpu_evaluator(weights, options);
    options.trust_meter = meter;
    const auto alone = painn::gpu::make_gpu_evaluator(weights, options);
    const auto sum = gpu::make_combined_step_evaluator(
        options, {painn::gpu::make_step_model(weights, options), zbl::gpu::make_step_model({8, 7, 1, 6})},
        joining_as_sum(2));
    std::vector<test::System> systems = {test::random_system(1, 21, 4.6, false), test::System{},
                                         test::random_system(4, 11, 4.2, false)};
    std::vector<Measured> expected, found;
    for (const test::System& system : systems) {
        expected.push_back(measure_on_cpu(*meter, system, descriptors_of(*plain, system), weights->cutoff));
        found.emplace_back(system.numbers.size());
    }
    const auto outputs_to = [](Measured& measured) {
        Outputs outputs;
        outputs.expected_errors = measured.expected_errors.data();
        outputs.novelties = measured.novelties.data();
        return outputs;
    };
    for (Evaluator* const evaluator : {alone.get(), sum.get()})
        for (size_t i = 0; i < systems.size(); ++i)
            for (int repeat = 0; repeat < 2; ++repeat) {
                const size_t atoms = systems[i].numbers.size();
                Measured measured(atoms);
                Numbers forces(3 * atoms, NAN), again(3 * atoms, NAN);
                Outputs outputs = outputs_to(measured);
                outputs.forces = forces.data();
                evaluator->evaluate(systems[i].view(), {}, outputs, team);
                check_same(measured, expected[i], 1e-9);
                Outputs without;
                without.forces = again.data();
                evaluator->evaluate(systems[i].view(), {}, without, team);
                CHECK_ALL_CLOSE(forces, again, 1e-11);

                Measured on_device(atoms);
                alone->device_pointers()->evaluate_on_device(systems[i].view(), {outputs_to(on_device)}, nullptr, team);
                check_same(on_device, expected[i], 1e-9);
            }

    std::vector<SystemView> views;
    std::vector<Outputs> outputs;
    for (size_t i = 0; i < systems.size(); ++i) {
        views.push_back(systems[i].view());
        outputs.push_back(outputs_to(found[i]));
    }
    alone->batches()->evaluate_batch(views, {}, outputs, team);
    for (size_t i = 0; i < systems.size(); ++i) check_same(found[i], expected[i], 1e-9);

    Measured none(systems[0].numbers.size());
    CHECK_THROWS_WITH(plain->evaluate(views[0], {}, outputs_to(none), team), doctest::Contains("no trust meter"));
}
