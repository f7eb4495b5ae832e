// SPDX-License-Identifier: MIT
// Cost models that are known are found again from their samples; calibrations of something else are refused; plans
// follow from both.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "dynamics/counter_random.h"
#include "model_files.h"
#include "neighbors/neighbor_list.h"
#include "tools/plan/plan.h"

using namespace mlff;
using namespace mlff::test;

namespace {

// Sizes and densities as a calibration has them.
std::vector<plan::Load> plan_loads() {
    std::vector<plan::Load> loads;
    for (const int64_t atoms : {12, 48, 150, 192, 768, 1536, 6912})
        for (const int64_t edges_per_atom : {26, 51})
            loads.push_back({atoms, atoms * edges_per_atom * (atoms < 192 ? 2 : 3) / 3});
    return loads;
}
template <class Cost>
std::vector<plan::Sample> samples_of(const Cost& cost, double noise = 0) {
    std::vector<plan::Sample> samples;
    for (const plan::Load& load : plan_loads())
        samples.push_back({load, cost(load) * (1 + noise * random_normals(7, 0, samples.size())[0])});
    return samples;
}
bool is_within(double found, double expected, double relative) {
    return std::abs(found - expected) <= relative * std::abs(expected);
}

double squared_errors(const plan::LinearCost& cost, const std::vector<plan::Sample>& samples) {
    double sum = 0;
    for (const plan::Sample& sample : samples) sum += std::pow(cost.of(sample.load) / sample.value - 1, 2);
    return sum;
}

plan::Calibration some_calibration() {
    plan::Calibration calibration;
    calibration.key = {"Some CPU", "x86_64", "avx2", "", 8, std::string(64, 'a'), "cpu", "mixed", 4, false};
    calibration.mlff_version = MLFF_VERSION_STRING;
    calibration.made = "2026-11-16T03:00:00Z";
    calibration.model_name = "x.model";
    calibration.material = "water";
    calibration.process_bytes = 4e7;
    calibration.memory_samples = samples_of([](const plan::Load& load) {
        return plan::LinearCost{2e7, 3e4, 500}.of(load);
    });
    calibration.evaluation_samples = samples_of([](const plan::Load& load) {
        return plan::LinearCost{1e-4, 2e-5, 1e-6}.of(load);
    });
    calibration.step_samples = samples_of([](const plan::Load& load) {
        return plan::LinearCost{2e-4, 3e-5, 1e-6}.of(load);
    });
    fit(calibration);
    return calibration;
}

template <class Work>
std::string plan_refusal(const Work& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was refused";
}
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a linear cost is found again from its samples, each coefficient") {
    for (const plan::LinearCost& known :
         {plan::LinearCost{3e6, 6e4, 120}, {1e-4, 2e-6, 3e-8}, {0, 5, 0.25}, {7, 0, 0}, {0, 0, 2}}) {
        const plan::LinearCost found =
            plan::fit_linear_cost(samples_of([&](const plan::Load& load) { return known.of(load); }));
        const double unit = known.of({100, 4000});
        CHECK(std::abs(found.fixed - known.fixed) <= 1e-9 * unit);
        CHECK(std::abs(found.per_atom - known.per_atom) <= 1e-11 * unit);
        CHECK(std::abs(found.per_edge - known.per_edge) <= 1e-12 * unit);
    }
}

TEST_CASE("no coefficient is negative, and no other cost without negative ones is nearer to the samples") {
    // Costs that want a negative coefficient: less than in proportion for few atoms, or fewer the more edges there are.
    const std::vector<std::function<double(const plan::Load&)>> wishes = {
        [](const plan::Load& load) { return 3e4 * static_cast<double>(load.atoms) - 2e5; },
        [](const plan::Load& load) {
            return 1e6 + 3e4 * static_cast<double>(load.atoms) - 150 * static_cast<double>(load.edges);
        },
        [](const plan::Load& load) {
            return 900 * static_cast<double>(load.edges) - 2e3 * static_cast<double>(load.atoms);
        }};
    for (const auto& wish : wishes) {
        const auto samples = samples_of(wish);
        for (const plan::Sample& sample : samples) REQUIRE(sample.value > 0);
        const plan::LinearCost found = plan::fit_linear_cost(samples);
        CHECK(found.fixed >= 0);
        CHECK(found.per_atom >= 0);
        CHECK(found.per_edge >= 0);
        const double least = squared_errors(found, samples);
        for (uint64_t i = 0; i < 200; ++i) {
            const auto random = random_normals(3, 1, i);
            const double reach = std::pow(10, -4 + static_cast<double>(i % 4));
            const plan::LinearCost other = {std::abs(found.fixed + reach * 1e6 * random[0]),
                                            std::abs(found.per_atom + reach * 3e4 * random[1]),
                                            std::abs(found.per_edge + reach * 500 * random_normals(4, 1, i)[0])};
            CHECK(squared_errors(other, samples) >= least * (1 - 1e-9));
        }
    }
}

TEST_CASE("samples of one density serve for that density, and small values count by what can be measured") {
    std::vector<plan::Sample> samples;
    for (const int64_t atoms : {10, 100, 1000})
        samples.push_back({{atoms, 40 * atoms}, 5.0 + 3.0 * static_cast<double>(atoms)});
    const plan::LinearCost one = plan::fit_linear_cost(samples);
    CHECK(is_within(one.of({500, 20'000}), 1505, 1e-9));
    // Of memory the first samples are wrong by 400 kB, which decides little beside a resolution of 4 MB.
    auto memory = samples_of([](const plan::Load& load) { return plan::LinearCost{1e6, 6e4, 100}.of(load); });
    memory[0].value = memory[1].value = 1.4e6;  // instead of 1.8 MB
    const plan::LinearCost found = plan::fit_linear_cost(memory, plan::kMemoryResolution);
    CHECK(is_within(found.of({6912, 200'000}), 1e6 + 6e4 * 6912 + 2e7, 0.05));
    CHECK(std::isfinite(plan::largest_error(found, memory, plan::kMemoryResolution)));
}

TEST_CASE("a floor is found where there is one, and none where there is not") {
    const plan::FlooredCost known = {2e-4, {5e-5, 3e-7, 1e-9}};
    const auto exact = samples_of([&](const plan::Load& load) { return known.of(load); });
    const plan::FlooredCost found = plan::fit_floored_cost(exact);
    CHECK(is_within(found.floor, 2e-4, 1e-9));
    CHECK(is_within(found.linear.per_atom, 3e-7, 1e-6));
    CHECK(is_within(found.linear.per_edge, 1e-9, 1e-6));
    CHECK(plan::largest_error(found, exact) < 1e-9);
    const plan::FlooredCost noisy =
        plan::fit_floored_cost(samples_of([&](const plan::Load& load) { return known.of(load); }, 0.02));
    CHECK(plan::largest_error(noisy, exact) < 0.06);
    const auto line = samples_of([](const plan::Load& load) { return plan::LinearCost{1e-4, 2e-5, 1e-6}.of(load); });
    CHECK(plan::largest_error(plan::fit_floored_cost(line), line) < 1e-9);
    CHECK(plan::fit_floored_cost(line).floor <= line.front().value * (1 + 1e-9));
}

TEST_CASE("what is no sample of a cost is refused") {
    CHECK_THROWS_AS(plan::fit_linear_cost({}), Error);
    for (const double value : {-1.0, 0.0, std::nan(""), std::numeric_limits<double>::infinity()})
        CHECK_THROWS_AS(plan::fit_linear_cost(std::vector<plan::Sample>{{{1, 1}, value}}), Error);
    CHECK(plan::fit_linear_cost(std::vector<plan::Sample>{{{1, 1}, 0.0}}, 1.0).of({1, 1}) == 0);
    CHECK_THROWS_AS(plan::fit_linear_cost(std::vector<plan::Sample>{{{1, 1}, -1.0}}, 2.0), Error);
}

TEST_CASE("a calibration is read as it was written, and what is none is refused by its name") {
    const plan::Calibration calibration = some_calibration();
    const std::string text = plan::calibration_text(calibration);
    const plan::Calibration again = plan::parse_calibration(text, "c.json");
    CHECK(again.key == calibration.key);
    CHECK(plan::calibration_text(again) == text);

    const auto changed = [&](const char* pointer, const nlohmann::json& value) {
        nlohmann::json json = nlohmann::json::parse(text);
        json[nlohmann::json::json_pointer(pointer)] = value;
        return plan_refusal([&] { plan::parse_calibration(json.dump(), "c.json"); });
    };
    CHECK(says(changed("/version", 2), "c.json: version 2 of the format, expected 1"));
    CHECK(says(changed("/format", "mlff-bench"), "is not a calibration"));
    CHECK(says(changed("/memory/B_per_atom", -1), "c.json: 'memory': 'B_per_atom' is not a number from 0"));
    CHECK(says(changed("/memory/fixed_B", nullptr), "'fixed_B'"));
    CHECK(says(changed("/evaluation/floor_s", 1e300), "'floor_s'"));
    CHECK(says(changed("/step/samples", "many"), "'samples'"));
    CHECK(says(changed("/memory/samples/0/atoms", 1.5), "'atoms' is not a whole number"));
    CHECK(says(changed("/machine", 3), "'machine' is not an object"));
    CHECK(says(changed("/threads", "all"), "'threads'"));
    CHECK(says(changed("/quick", 1), "'quick'"));
    CHECK(says(plan_refusal([&] { plan::parse_calibration("[]", "c.json"); }), "c.json: is not a calibration"));
    CHECK(says(plan_refusal([&] { plan::parse_calibration(text.substr(0, text.size() / 2), "c.json"); }), "c.json"));
}

TEST_CASE("a store finds the calibration of this machine, model and device, and says why it has none") {
    const TemporaryDirectory directory;
    const plan::CalibrationStore store(directory.file("calibrations"));
    const plan::Calibration calibration = some_calibration();
    std::string why;
    CHECK(!store.find(calibration.key, &why));
    CHECK(says(why, "has no calibration"));
    CHECK(store.list().empty());
    const std::string path = store.put(calibration);
    CHECK(path == store.path_of(calibration.key));
    REQUIRE(store.find(calibration.key, &why));
    CHECK(plan::calibration_text(*store.find(calibration.key, &why)) == plan::calibration_text(calibration));
    CHECK(store.put(calibration) == path);  // takes its place
    CHECK(store.list().size() == 1);

    plan::CalibrationKey other = calibration.key;
    other.processor = "Another CPU";
    CHECK(!store.find(other, &why));
    const std::string refused = plan_refusal([&] { plan::read_calibration(path, other); });
    CHECK(says(refused, path));
    CHECK(says(refused, "processor 'Some CPU', not 'Another CPU'"));
    other.threads = 2;
    CHECK(says(plan_refusal([&] { plan::read_calibration(path, other); }), "threads '4', not '2'"));

    plan::Calibration old = calibration;
    old.mlff_version = "0.0.1";
    store.put(old);
    CHECK(!store.find(calibration.key, &why));
    CHECK(says(why, "was made by mlff 0.0.1"));
    CHECK(store.list().empty());
    std::ofstream(path) << "{";
    CHECK(!store.find(calibration.key, &why));
    CHECK(says(why, path));
    CHECK(store.list().empty());
    CHECK(says(plan_refusal([&] { plan::CalibrationStore("").put(calibration); }), "MLFF_CALIBRATIONS"));
    CHECK(!plan::CalibrationStore("").find(calibration.key, &why));
}

TEST_CASE("plans: memory, what fits, and time") {
    plan::Calibration calibration = some_calibration();
    const plan::Load load = {1000, 40'000};
    const plan::MemoryPlan memory = plan::plan_memory(calibration, load, 1e9);
    CHECK(is_within(memory.needed_bytes, 4e7 + 2e7 + 1000 * (3e4 + 40 * 500), 1e-6));
    CHECK(memory.fits());
    CHECK(memory.largest_atoms == doctest::Approx((1e9 - 6e7) / 5e4).epsilon(1e-3));
    CHECK(plan::plan_memory(calibration, {memory.largest_atoms, 40 * memory.largest_atoms}, 1e9).fits());
    CHECK(!plan::plan_memory(calibration, {memory.largest_atoms + 2, 40 * (memory.largest_atoms + 2)}, 1e9).fits());
    CHECK(!plan::plan_memory(calibration, load, 1e8).fits());
    CHECK(plan::plan_memory(calibration, load, 1e7).largest_atoms == 0);
    calibration.memory.floor = 3e8;  // more than these atoms take
    CHECK(is_within(plan::plan_memory(calibration, load, 1e9).needed_bytes, 4e7 + 3e8, 1e-12));
    CHECK(plan::plan_memory(calibration, load, 1e9).largest_atoms == memory.largest_atoms);
    CHECK(plan::plan_memory(calibration, load, 3e8).largest_atoms == 0);
    calibration.memory.floor = 0;
    calibration.key.gpu = "Some GPU";  // the host's memory is another
    CHECK(is_within(plan::plan_memory(calibration, load, 1e9).needed_bytes, 2e7 + 1000 * (3e4 + 40 * 500), 1e-6));

    const auto steps = [](int64_t atoms) { return 1e6 + 1e4 * static_cast<double>(atoms) + (atoms > 5000 ? 5e7 : 0); };
    const plan::MemoryPlan found = plan::plan_memory(steps, 100, 1.3e8);
    CHECK(found.needed_bytes == 2e6);
    CHECK(steps(found.largest_atoms) <= 1.3e8);
    CHECK(steps(found.largest_atoms + 1) > 1.3e8);

    const plan::TimePlan time = plan::plan_time(calibration, load);
    CHECK(is_within(time.evaluation, 1e-4 + 2e-2 + 4e-2, 1e-6));
    CHECK(is_within(time.step, 2e-4 + 3e-2 + 4e-2, 1e-6));
    CHECK(is_within(time.nanoseconds_per_day(0.5), 86400 / time.step * 0.5e-6, 1e-12));
}

TEST_CASE("edges are counted as the full neighbour list has them") {
    ThreadTeam team(2);
    for (const double box : {3.0, 9.0}) {  // the first is smaller than the cutoff: atoms see their own images
        std::vector<double> positions;
        std::vector<int32_t> numbers(40, 6);
        for (size_t i = 0; i < numbers.size(); ++i)
            for (int k = 0; k < 3; ++k)
                positions.push_back(box * std::abs(std::fmod(random_normals(5, static_cast<uint64_t>(k), i)[0], 1.0)));
        SystemView system;
        system.atom_count = 40;
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        system.cell = {{{box, 0, 0}, {0.3, box, 0}, {0, 0, box}}};
        for (const bool is_periodic : {true, false}) {
            system.periodic = {is_periodic, is_periodic, is_periodic};
            NeighborOptions options;
            options.cutoff = 4;
            NeighborList list(options);
            list.update(system, team);
            CHECK(plan::count_edges(system, 4, team) == list.edges().edge_count);
            CHECK(list.edges().edge_count > 0);
        }
    }
}
