// SPDX-License-Identifier: MIT
// The reference backend of PaiNN against finite differences stage by stage, and against what must hold for any model.
// Its goldens are in test_goldens.cpp.
#include <doctest/doctest.h>

#include "core/error.h"
#include "painn/functions/dense.h"
#include "painn/functions/near_field.h"
#include "painn/functions/radial.h"
#include "painn/functions/repulsion_pairs.h"
#include "painn/reference/message.h"
#include "painn/reference/update.h"
#include "test_mace_numerics.h"
#include "test_painn_support.h"

using namespace mlff;
using namespace painn_test;
using namespace mlff::painn;
using namespace mlff::painn::reference;
using mace_test::check_gradient;
using mace_test::Function;
using mace_test::Random;
using mace_test::transformed;

namespace {

const Shape kSmall;
const Shape kLarger = {64, 3, 20, 5.0, {1, 7, 8, 16}, true, 5};
const Shape kWithNearField = {32, 2, 8, 4.5, {1, 6, 8}, true, 3, 0.15, 2.0};

}  // namespace

// ---- stages ----

TEST_CASE("radial functions: slopes, and smooth at the cutoff") {
    Random random;
    for (const double d : {0.3, 1.1, 2.7, 4.3}) {
        std::vector<double> values(9), slopes(9);
        radial_functions(8, 4.5, d, values.data(), slopes.data());
        CHECK(std::abs(values[3] - std::sin(3 * std::numbers::pi * d / 4.5) / d * 0.5 *
                                       (1 + std::cos(std::numbers::pi * d / 4.5))) <= 1e-14);
        const std::vector<double> weights = random.numbers(9);
        const Function f = [&](const std::vector<double>& x) {
            std::vector<double> at(9);
            radial_functions(8, 4.5, x[0], at.data(), nullptr);
            return at;
        };
        check_gradient(f, {d}, weights, {mace_test::dot(weights, slopes)});
    }
    std::vector<double> values(9), slopes(9);
    for (const double d : {4.5 - 1e-6, 4.5}) {
        radial_functions(8, 4.5, d, values.data(), slopes.data());
        CHECK(mace_test::largest_size(values) <= 1e-12);
        CHECK(mace_test::largest_size(slopes) <= 1e-5);
    }
}

TEST_CASE("repulsion: slope, size, and nothing beyond the radii") {
    const Weights weights = random_weights(kSmall);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            const RepulsionPair pair = repulsion_pair(weights, i, j);
            const double reach =
                weights.repulsion_radii[static_cast<size_t>(i)] + weights.repulsion_radii[static_cast<size_t>(j)];
            CHECK(pair.reach == reach);
            for (const double share : {0.1, 0.4, 0.8, 0.99}) {
                const Function f = [&](const std::vector<double>& x) {
                    return std::vector<double>{pair_repulsion(pair, x[0]).energy};
                };
                check_gradient(f, {share * reach}, {1.0}, {pair_repulsion(pair, share * reach).slope});
                CHECK(pair_repulsion(pair, share * reach).energy > 0);
            }
            for (const double d : {reach, reach + 0.1, 100.0}) {
                CHECK(pair_repulsion(pair, d).energy == 0);
                CHECK(pair_repulsion(pair, d).slope == 0);
            }
            CHECK(std::abs(pair_repulsion(pair, reach - 1e-5).slope) <= 1e-6);
        }
    // Two bare protons close together: k / d.
    CHECK(std::abs(pair_repulsion(repulsion_pair(weights, 0, 0), 1e-5).energy * 1e-5 - 14.3996454784255) <= 1e-3);
    Shape without = kSmall;
    without.has_repulsion = false;
    CHECK(pair_repulsion(repulsion_pair(random_weights(without), 0, 1), 0.01).energy == 0);
}

TEST_CASE("what is seen of a distance: slope, two continuous derivatives, the true one from the shortest on") {
    constexpr double kClosest = 1.3;
    const auto seen = [](double distance) { return seen_distance(kClosest, distance); };
    for (const double d : {0.1, 0.8, 0.95, 1.1, 1.25, 1.29, 1.4}) {
        const Function f = [&](const std::vector<double>& x) { return std::vector<double>{seen(x[0]).value}; };
        check_gradient(f, {d}, {1.0}, {seen(d).slope});
    }
    for (const double d : {kClosest, std::nextafter(kClosest, 2.0), 3.0}) {
        CHECK(seen(d).value == d);
        CHECK(seen(d).slope == 1);
    }
    for (const double d : {0.0, 1e-3, 0.5, 0.7 * kClosest - 1e-12}) {
        CHECK(std::abs(seen(d).value - 0.85 * kClosest) <= 1e-14);
        CHECK(seen(d).slope == 0);
    }
    constexpr double kStep = 1e-6;
    for (const double end : {kClosest, 0.7 * kClosest})
        for (const double side : {-kStep, kStep}) {
            CHECK(std::abs(seen(end + side).value - seen(end).value) <= 1.1 * kStep);
            CHECK(std::abs(seen(end + side).slope - seen(end).slope) <=
                  1e-10);  // of second order: the second derivative is 0 on both sides
        }
    double last = seen(0.7 * kClosest).value;
    for (double d = 0.7 * kClosest + 0.01; d < 1.5; d += 0.01) {
        CHECK(seen(d).value > last);
        last = seen(d).value;
    }
    CHECK(seen_distance(0, 0.01).value == 0.01);  // no limit
    CHECK(std::isnan(seen_distance(kClosest, NAN).value));
}

TEST_CASE("dense layers in reverse") {
    Random random;
    const Weights weights = random_weights(kSmall);
    const Block& block = weights.blocks[0];
    for (const double x : {-3.0, -0.4, 0.0, 1.7, 30.0})
        check_gradient([](const std::vector<double>& at) { return std::vector<double>{silu(at[0])}; }, {x}, {1.0},
                       {silu_slope(x)});
    const std::vector<double> in = random.numbers(32), by_out = random.numbers(96);
    std::vector<double> gradient(32, 0.0);
    reverse_two_layers(block.message_hidden, block.message_output, in.data(), by_out.data(), gradient.data());
    const Function f = [&](const std::vector<double>& x) {
        std::vector<double> out(96);
        compute_two_layers(block.message_hidden, block.message_output, x.data(), out.data());
        return out;
    };
    check_gradient(f, in, by_out, gradient);
}

TEST_CASE("filters in reverse") {
    Random random;
    const Weights weights = random_weights(kSmall);
    const std::vector<double> by_filter = random.numbers(96);
    for (const double d : {0.4, 1.3, 4.4}) {
        const Function f = [&](const std::vector<double>& x) {
            std::vector<double> filter(96);
            compute_filter(weights, weights.blocks[1], x[0], filter.data());
            return filter;
        };
        check_gradient(f, {d}, by_filter, {reverse_filter(weights, weights.blocks[1], d, by_filter.data())});
    }
}

TEST_CASE("messages in reverse, by all they depend on") {
    Random random;
    constexpr size_t kWidth = 32;
    const std::vector<double> filter = random.numbers(3 * kWidth), phi = random.numbers(3 * kWidth),
                              vectors = random.numbers(3 * kWidth), direction = random.numbers(3);
    const std::vector<double> by_result = random.numbers(4 * kWidth);  // scalars, vectors
    std::vector<double> x = filter;
    for (const auto* part : {&phi, &vectors, &direction}) x.insert(x.end(), part->begin(), part->end());
    const auto message_at = [](const std::vector<double>& at) {
        return Message{static_cast<int>(kWidth),
                       at.data(),
                       at.data() + 3 * kWidth,
                       at.data() + 6 * kWidth,
                       {at[9 * kWidth], at[9 * kWidth + 1], at[9 * kWidth + 2]}};
    };
    const Function f = [&](const std::vector<double>& at) {
        std::vector<double> result(4 * kWidth, 0.0);
        add_message(message_at(at), result.data(), result.data() + kWidth);
        return result;
    };
    std::vector<double> gradient(x.size(), 0.0);
    MessageGradient parts = {gradient.data(), gradient.data() + 3 * kWidth, gradient.data() + 6 * kWidth};
    reverse_message(message_at(x), by_result.data(), by_result.data() + kWidth, parts);
    std::copy(parts.direction.begin(), parts.direction.end(), gradient.begin() + 9 * kWidth);
    check_gradient(f, x, by_result, gradient);
}

TEST_CASE("updates in reverse, also of vectors that are zero") {
    Random random;
    const Weights weights = random_weights(kSmall);
    const Block& block = weights.blocks[0];
    const std::vector<double> by_result = random.numbers(128);
    std::vector<double> x = random.numbers(128);
    const Function f = [&](std::vector<double> at) {
        compute_update(block, at.data(), at.data() + 32);
        return at;
    };
    std::vector<double> gradient = by_result;
    reverse_update(block, x.data(), x.data() + 32, gradient.data(), gradient.data() + 32);
    check_gradient(f, x, by_result, gradient);
    std::fill(x.begin() + 32, x.end(), 0.0);
    gradient = by_result;
    reverse_update(block, x.data(), x.data() + 32, gradient.data(), gradient.data() + 32);
    CHECK(std::isfinite(mace_test::largest_size(gradient)));
    for (double value : gradient) CHECK(std::isfinite(value));
}

// ---- the whole ----

TEST_CASE("forces are the slope of the energy, the virial that by strain") {
    for (const Shape& shape : {kSmall, kLarger, kWithNearField}) {
        CAPTURE(shape.closest);
        const auto weights = shared_weights(shape);
        const System system =
            random_crystal(*weights, 5, 6, 4.2);  // smaller than the cutoff: atoms are neighbours of themselves
        const Result found = evaluate_reference(weights, system);
        constexpr double kStep = 1e-4;
        std::vector<double> slopes(found.forces.size());
        for (size_t i = 0; i < slopes.size(); ++i) {
            const auto energy_at = [&](double step) {
                System moved = system;
                moved.positions[i] += step;
                return evaluate_reference(weights, moved).energy;
            };
            slopes[i] = -(8 * (energy_at(kStep) - energy_at(-kStep)) - (energy_at(2 * kStep) - energy_at(-2 * kStep))) /
                        (12 * kStep);
        }
        check_all(found.forces, slopes, 1e-8);
        std::vector<double> by_strain(9);
        for (size_t a = 0; a < 3; ++a)
            for (size_t b = 0; b < 3; ++b) {
                const auto energy_at = [&](double strain) {
                    Mat3 matrix = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
                    matrix[a][b] += 0.5 * strain;
                    matrix[b][a] += 0.5 * strain;
                    return evaluate_reference(weights, transformed(system, matrix, 0)).energy;
                };
                by_strain[3 * a + b] =
                    -(8 * (energy_at(kStep) - energy_at(-kStep)) - (energy_at(2 * kStep) - energy_at(-2 * kStep))) /
                    (12 * kStep);
            }
        check_all(found.virial, by_strain, 1e-8);
    }
}

TEST_CASE("the network does not see that atoms are nearer than the data, the repulsion does") {
    Shape shape = kWithNearField;
    const auto weights = shared_weights(shape);
    shape.closest = 0;
    const auto without = shared_weights(shape);
    const auto pair_at = [](double distance) {
        System pair;
        pair.numbers = {1, 6};
        pair.positions = {0, 0, 0, 0.6 * distance, -0.8 * distance, 0};
        return pair;
    };
    const double closest = weights->closest_of(0, 1);
    CHECK(closest == 2.1);
    const auto repulsion = [&](double distance) {
        return pair_repulsion(repulsion_pair(*weights, 0, 1), distance).energy;
    };
    const double still = evaluate_reference(without, pair_at(0.85 * closest)).energy;
    for (const double d : {0.05, 0.4, 0.69 * closest})
        CHECK(std::abs(evaluate_reference(weights, pair_at(d)).energy - repulsion(d) - still) <=
              1e-11 * std::max(1.0, repulsion(d)));
    const double middle = 0.9 * closest;
    CHECK(std::abs(evaluate_reference(weights, pair_at(middle)).energy -
                   evaluate_reference(without, pair_at(seen_distance(closest, middle).value)).energy) <= 1e-11);
    CHECK(std::abs(evaluate_reference(weights, pair_at(middle)).energy -
                   evaluate_reference(without, pair_at(middle)).energy) > 1e-6);
    CHECK(evaluate_reference(weights, pair_at(closest + 0.01)).forces ==
          evaluate_reference(without, pair_at(closest + 0.01)).forces);
}

TEST_CASE("turned, shifted, renumbered and repeated crystals") {
    const auto weights = shared_weights(kLarger);
    const System system = random_crystal(*weights, 9, 10, 5.5);
    const Result found = evaluate_reference(weights, system);

    constexpr Mat3 kTurn = {{{0.6, -0.8, 0}, {0.48, 0.36, -0.8}, {0.64, 0.48, 0.6}}};
    const Result turned = evaluate_reference(weights, transformed(system, kTurn, 0.37));
    CHECK_ALL_CLOSE(std::vector<double>{turned.energy}, std::vector<double>{found.energy}, 1e-10);
    std::vector<double> expected(found.forces.size());
    for (size_t i = 0; i < expected.size(); i += 3)
        for (size_t a = 0; a < 3; ++a)
            for (size_t b = 0; b < 3; ++b) expected[i + a] += kTurn[a][b] * found.forces[i + b];
    check_all(turned.forces, expected, 1e-11);

    System renumbered = system;
    const size_t count = system.numbers.size();
    for (size_t i = 0; i < count; ++i) {
        renumbered.numbers[i] = system.numbers[count - 1 - i];
        for (size_t a = 0; a < 3; ++a) renumbered.positions[3 * i + a] = system.positions[3 * (count - 1 - i) + a];
    }
    const Result other = evaluate_reference(weights, renumbered);
    for (size_t i = 0; i < count; ++i)
        for (size_t a = 0; a < 3; ++a) expected[3 * i + a] = found.forces[3 * (count - 1 - i) + a];
    check_all(other.forces, expected, 1e-11);

    System doubled = system;
    for (size_t i = 0; i < system.positions.size(); ++i)
        doubled.positions.push_back(system.positions[i] + system.cell[2][i % 3]);
    doubled.numbers.insert(doubled.numbers.end(), system.numbers.begin(), system.numbers.end());
    for (double& x : doubled.cell[2]) x *= 2;
    const Result twice = evaluate_reference(weights, doubled);
    CHECK_ALL_CLOSE(std::vector<double>{twice.energy}, std::vector<double>{2 * found.energy}, 1e-9);
    expected = found.forces;
    expected.insert(expected.end(), found.forces.begin(), found.forces.end());
    check_all(twice.forces, expected, 1e-11);
    std::vector<double> virial = found.virial;
    for (double& value : virial) value *= 2;
    check_all(twice.virial, virial, 1e-11);
}

TEST_CASE("an atom passes the cutoff without a jump") {
    const auto weights = shared_weights(kSmall);
    System pair;
    pair.numbers = {6, 8};
    const auto at = [&](double distance) {
        pair.positions = {0, 0, 0, distance, 0, 0};
        return evaluate_reference(weights, pair);
    };
    const Result inside = at(4.5 - 1e-5), outside = at(4.5 + 1e-5);
    CHECK(inside.edge_count == 2);
    CHECK(outside.edge_count == 0);
    CHECK_ALL_CLOSE(std::vector<double>{inside.energy}, std::vector<double>{outside.energy}, 1e-8);
    CHECK_ALL_CLOSE(inside.forces, outside.forces, 1e-3);
}

TEST_CASE("results do not depend on the number of threads; no atoms, and one, are systems too") {
    const auto weights = shared_weights(kSmall);
    const System system = random_crystal(*weights, 3, 25, 7.0);
    const Result expected = evaluate_reference(weights, system, 1);
    for (const int threads : {2, 3}) {
        const Result found = evaluate_reference(weights, system, threads);
        CHECK(found.energy == expected.energy);
        CHECK(found.forces == expected.forces);
        CHECK(found.virial == expected.virial);
        CHECK(found.atom_virials == expected.atom_virials);
    }
    CHECK(evaluate_reference(weights, System{}).energy == 0);
    System one;
    one.numbers = {6};
    one.positions = {1, 2, 3};
    CHECK_ALL_CLOSE(evaluate_reference(weights, one).forces, std::vector<double>(3, 0.0), 0.0);
}

TEST_CASE("an element that the model does not know is named") {
    const auto weights = shared_weights(kSmall);
    System system;
    system.numbers = {6, 92};
    system.positions = {0, 0, 0, 1, 0, 0};
    try {
        evaluate_reference(weights, system);
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.status() == Status::system);
        CHECK(std::string(error.what()) ==
              "atom 1 has atomic number 92, which the model does not know; it knows H C O");
    }
}
