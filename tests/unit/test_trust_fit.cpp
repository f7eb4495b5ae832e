// SPDX-License-Identifier: MIT
// Fits of trust meters: their linear algebra, what they learn from made-up errors, and the meter of the built-in
// student.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "core/error.h"
#include "core/mapped_file.h"
#include "engine/embedded_models.h"
#include "engine/load_model.h"
#include "model_files.h"
#include "tools/trust/fit.h"
#include "tools/trust/least_squares.h"
#include "tools/trust/principal_components.h"
#include "trust/measure.h"

using namespace mlff;

namespace {

// Frames of ten atoms of two elements. The error of an atom grows with the square of its first descriptor.
trust::Samples made_up_samples(unsigned seed, int frame_count, double width = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    trust::Samples samples;
    samples.descriptor_count = 12;
    for (int frame = 0; frame < frame_count; ++frame)
        for (int atom = 0; atom < 10; ++atom) {
            const int z = atom % 2 == 0 ? 1 : 8;
            double first = 0;
            for (int d = 0; d < samples.descriptor_count; ++d) {
                const double number = width * normal(random) * (d < 6 ? 1.0 : 0.1);
                if (d == 0) first = number;
                samples.descriptors.push_back(static_cast<float>(number + z));
            }
            samples.atomic_numbers.push_back(z);
            samples.groups.push_back(frame);
            samples.errors.push_back(0.02 * std::exp(first * first + 0.2 * normal(random)));
            for (int other = 0; other < 10; ++other) {
                if (other == atom) continue;
                samples.neighbors.push_back(10 * frame + other);
                samples.distances.push_back(1 + 0.3 * std::abs(other - atom));
            }
            samples.first.push_back(static_cast<int64_t>(samples.neighbors.size()));
        }
    return samples;
}

}  // namespace

TEST_CASE("least squares finds the weights that made the numbers") {
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    const std::vector<double> weights = {1.5, -2, 0.25, 0};
    trust::NormalEquations equations(4), half(4);
    for (int i = 0; i < 200; ++i) {
        const std::vector<double> terms = {1, normal(random), normal(random), normal(random)};
        double target = 0;
        for (size_t t = 0; t < 4; ++t) target += weights[t] * terms[t];
        equations.add(terms, target);
        if (i % 2 == 0) half.add(terms, target);
    }
    const std::vector<double> found = equations.solve(0, 4);
    for (size_t t = 0; t < 4; ++t) CHECK(found[t] == doctest::Approx(weights[t]).epsilon(1e-6));
    // Taking observations away leaves the others; a penalty makes weights smaller, but not those that are free of it.
    equations.add(half, -1);
    const std::vector<double> others = equations.solve(0, 4), penalised = equations.solve(1, 1);
    for (size_t t = 0; t < 4; ++t) CHECK(others[t] == doctest::Approx(weights[t]).epsilon(1e-6));
    CHECK(std::abs(penalised[1]) < 0.7 * std::abs(weights[1]));
    CHECK(std::abs(penalised[0] - weights[0]) < 0.3);
}

TEST_CASE("principal components are orthogonal, sorted, and leave out the rest") {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    constexpr size_t kWidth = 9;
    std::vector<float> rows;
    for (int row = 0; row < 4000; ++row)
        for (size_t d = 0; d < kWidth; ++d)
            rows.push_back(static_cast<float>(normal(random) / static_cast<double>(1 + d)));
    const auto found = trust::principal_components(rows, kWidth, 4);
    REQUIRE(found.variances.size() == 4);
    double rest = 0;
    for (size_t d = 4; d < kWidth; ++d) rest += 1.0 / static_cast<double>((1 + d) * (1 + d));
    CHECK(found.rest_variance == doctest::Approx(rest).epsilon(0.1));
    for (size_t k = 0; k < 4; ++k) {
        CHECK(found.variances[k] == doctest::Approx(1.0 / static_cast<double>((1 + k) * (1 + k))).epsilon(0.1));
        for (size_t j = 0; j < 4; ++j) {
            double product = 0;
            for (size_t d = 0; d < kWidth; ++d)
                product += found.directions[k * kWidth + d] * found.directions[j * kWidth + d];
            CHECK(product == doctest::Approx(j == k ? 1.0 : 0.0).epsilon(1e-9));
        }
    }
}

TEST_CASE("a fitted meter orders errors that it has not seen, and knows what is far from training") {
    const trust::Samples seen = made_up_samples(1, 300), labelled = made_up_samples(2, 300);
    const TrustMeter meter = trust::fit_trust_meter(seen, labelled, 5);
    CHECK(meter.elements == std::vector<int>{1, 8});
    const trust::Judgement judgement = trust::judge(meter, made_up_samples(3, 200));
    CHECK(judgement.atom_count == 2000);
    CHECK(judgement.rank_correlation > 0.9);
    CHECK(judgement.best_flagged > 0.9);
    CHECK(judgement.false_alarms < 0.2);
    CHECK(judgement.outside < 0.01);
    REQUIRE(judgement.bins.size() == 10);
    for (size_t bin = 0; bin + 1 < judgement.bins.size(); ++bin)  // the last tenth has a few very large errors
        CHECK(judgement.bins[bin].expected == doctest::Approx(judgement.bins[bin].found).epsilon(0.3));
    CHECK(trust::judge(meter, made_up_samples(4, 100, 6)).outside > 0.5);
    const trust::Judgement none = trust::judge(meter, trust::Samples{});
    CHECK(none.atom_count == 0);
    CHECK(none.bins.empty());
}

TEST_CASE("too few atoms are refused") {
    const trust::Samples few = made_up_samples(1, 4), many = made_up_samples(1, 60);
    CHECK_THROWS_WITH_AS(trust::fit_trust_meter(few, many, 5),
                         "the frames that training has seen have 40 atoms, expected 50 or more", Error);
    CHECK_THROWS_WITH_AS(trust::fit_trust_meter(many, few, 5),
                         "the frames whose errors count have 40 atoms, expected 50 or more", Error);
    trust::Samples unknown = many;  // 600 atoms, of which training has seen the elements of 30
    for (size_t atom = 0; atom < unknown.atomic_numbers.size(); ++atom)
        if (atom % 20 != 0) unknown.atomic_numbers[atom] = 14;
    CHECK_THROWS_WITH_AS(trust::fit_trust_meter(many, unknown, 5),
                         "the frames whose errors count have 30 atoms of elements that training has seen, expected 50 "
                         "or more",
                         Error);
    trust::Samples same = many;
    std::fill(same.descriptors.begin(), same.descriptors.end(), 2.0f);
    const test::TemporaryDirectory folder;
    const std::string path = folder.file("same.trust");
    write_trust_meter(path, trust::fit_trust_meter(same, many, 5));  // knows one environment, and can be read
    const TrustMeter meter = read_trust_meter(read_safetensors(MappedFile::open(path)->bytes(), path), path);
    CHECK(trust::judge(meter, same).outside == 0);
    CHECK(trust::judge(meter, many).outside > 0.99);
}

TEST_CASE("the meter of the built-in student belongs to it") {
    const auto model = load_model("builtin");
    const auto& meter = model->trust_meter();
    REQUIRE(meter);
    CHECK(meter->model_fingerprint == fingerprint_of_model(embedded_student()));
    CHECK(meter->descriptor_count == model->summary().descriptor_count);
    CHECK(meter->elements == model->summary().elements);
    // Water, and hydrogen peroxide, which the student has not seen.
    Session session(model, SessionOptions{.device = "cpu"});
    const std::vector<int32_t> water = {8, 1, 1}, peroxide = {8, 8, 1, 1};
    const std::vector<double> at_water = {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0},
                              at_peroxide = {0, 0.73, -0.05, 0, -0.73, -0.05, 0.8, 0.9, 0.4, -0.8, -0.9, 0.4};
    const auto largest_of = [&](const std::vector<int32_t>& numbers, const std::vector<double>& positions) {
        SystemView system;
        system.atom_count = static_cast<int64_t>(numbers.size());
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        std::vector<double> errors(numbers.size());
        Results results;
        results.outputs.expected_errors = errors.data();
        session.evaluate({&system, 1}, {&results, 1});
        return *std::max_element(errors.begin(), errors.end());
    };
    CHECK(largest_of(water, at_water) < 0.05);
    CHECK(largest_of(peroxide, at_peroxide) > meter->alarm_error);
}
