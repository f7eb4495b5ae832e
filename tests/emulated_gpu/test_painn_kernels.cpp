// SPDX-License-Identifier: MIT
// The GPU backend of PaiNN, run on the host by the emulated GPU: full results against the formulas of docs/painn.md
// written out below, derivatives against finite differences of these. What a GPU alone can show (races, graphs, speed)
// is not tested here.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "../tags.h"
#include "../unit/backend.h"
#include "../unit/close.h"
#include "core/error.h"
#include "core/stage_profile.h"
#include "image_domain.h"
#include "neighbors/neighbor_list.h"
#include "painn/gpu/evaluator.h"
#include "painn/gpu/sizes.h"
#include "potential/batch_evaluation.h"
#include "potential/domain_evaluation.h"
#include "potential/memory_forecasts.h"
#include "random_painn.h"

using namespace mlff;
using namespace mlff::test;

namespace {

// ---- docs/painn.md, written out ----

double silu(double x) { return x / (1 + std::exp(-x)); }
Numbers apply_plainly(const Linear& linear, const Numbers& in) {
    Numbers out(static_cast<size_t>(linear.out_width));
    for (size_t o = 0; o < out.size(); ++o) {
        out[o] = linear.bias.empty() ? 0 : linear.bias[o];
        for (size_t i = 0; i < in.size(); ++i) out[o] += linear.weight[o * in.size() + i] * in[i];
    }
    return out;
}
Numbers network(const Linear& hidden, const Linear& output, const Numbers& in) {
    Numbers middle = apply_plainly(hidden, in);
    for (double& x : middle) x = silu(x);
    return apply_plainly(output, middle);
}
double seen(const Weights& weights, size_t a, size_t b, double d) {
    if (weights.closest.empty()) return d;
    const double closest = weights.closest[3 * a + b], x = std::min(1.0, (closest - d) / (0.3 * closest));
    return d >= closest ? d : closest - 0.3 * closest * (x - std::pow(x, 3) + std::pow(x, 4) / 2);
}
double repulsion(const Weights& weights, size_t a, size_t b, double d) {
    const double za = weights.atomic_numbers[a], zb = weights.atomic_numbers[b],
                 t = d / (weights.repulsion_radii[a] + weights.repulsion_radii[b]);
    if (t >= 1) return 0;
    const double l = 0.8854 * 0.529177210903 / (std::pow(za, 0.23) + std::pow(zb, 0.23));
    const double share[] = {0.18175, 0.50986, 0.28022, 0.02817}, decay[] = {3.19980, 0.94229, 0.40290, 0.20162};
    double sum = 0;
    for (int m = 0; m < 4; ++m) sum += share[m] * std::exp(-decay[m] * d / l);
    return 14.3996454784255 * za * zb / d * sum * (1 - 10 * std::pow(t, 3) + 15 * std::pow(t, 4) - 6 * std::pow(t, 5));
}

struct Expected {
    Numbers energies, descriptors;
    double energy = 0;
};
Expected evaluate_plainly(const Weights& weights, const System& system) {
    NeighborOptions options;
    options.cutoff = weights.cutoff;
    const BruteForceEdges edges = brute_force_neighbors(system.view(), options);
    const size_t F = static_cast<size_t>(weights.hidden), atoms = system.numbers.size();
    std::vector<size_t> element;
    std::vector<Numbers> s;
    std::vector<std::array<Numbers, 3>> v(atoms, {Numbers(F), Numbers(F), Numbers(F)});
    for (size_t i = 0; i < atoms; ++i) {
        element.push_back(static_cast<size_t>(
            std::find(weights.atomic_numbers.begin(), weights.atomic_numbers.end(), system.numbers[i]) -
            weights.atomic_numbers.begin()));
        s.emplace_back(weights.embedding.begin() + static_cast<long>(element[i] * F),
                       weights.embedding.begin() + static_cast<long>((element[i] + 1) * F));
    }
    for (const painn::Block& block : weights.blocks) {
        std::vector<Numbers> phi;
        for (size_t i = 0; i < atoms; ++i) phi.push_back(network(block.message_hidden, block.message_output, s[i]));
        const auto old_v = v;
        for (size_t i = 0; i < atoms; ++i)
            for (auto e = static_cast<size_t>(edges.first[i]); e < static_cast<size_t>(edges.first[i + 1]); ++e) {
                const double true_d = edges.distance[e], c = weights.cutoff,
                             d = seen(weights, element[i], element[static_cast<size_t>(edges.sender[e])], true_d);
                Numbers basis;
                for (int n = 1; n <= weights.radial_count; ++n) basis.push_back(std::sin(n * M_PI * d / c) / d);
                Numbers filter = apply_plainly(block.filter, basis);
                for (double& x : filter) x *= (1 + std::cos(M_PI * d / c)) / 2;
                const auto j = static_cast<size_t>(edges.sender[e]);
                for (size_t f = 0; f < F; ++f) {
                    s[i][f] += phi[j][f] * filter[f];
                    for (size_t k = 0; k < 3; ++k)
                        v[i][k][f] += phi[j][F + f] * filter[F + f] * old_v[j][k][f] +
                                      phi[j][2 * F + f] * filter[2 * F + f] * edges.vector[3 * e + k] / true_d;
                }
            }
        for (size_t i = 0; i < atoms; ++i) {
            Numbers mixed[3], input = s[i];
            for (size_t k = 0; k < 3; ++k) mixed[k] = apply_plainly(block.mix, v[i][k]);
            for (size_t f = 0; f < F; ++f) {
                double square = 0;
                for (size_t k = 0; k < 3; ++k) square += mixed[k][F + f] * mixed[k][F + f];
                input.push_back(std::sqrt(square + 1e-8));
            }
            const Numbers a = network(block.update_hidden, block.update_output, input);
            for (size_t f = 0; f < F; ++f) {
                double dot = 0;
                for (size_t k = 0; k < 3; ++k) dot += mixed[k][f] * mixed[k][F + f];
                s[i][f] += a[f] + a[F + f] * dot;
                for (size_t k = 0; k < 3; ++k) v[i][k][f] += a[2 * F + f] * mixed[k][f];
            }
        }
    }
    Expected expected;
    for (size_t i = 0; i < atoms; ++i) {
        double energy = weights.atomic_energies[element[i]] +
                        weights.scales[element[i]] * network(weights.readout_hidden, weights.readout_output, s[i])[0];
        if (!weights.repulsion_radii.empty())
            for (auto e = static_cast<size_t>(edges.first[i]); e < static_cast<size_t>(edges.first[i + 1]); ++e)
                energy += 0.5 * repulsion(weights, element[i], element[static_cast<size_t>(edges.sender[e])],
                                          edges.distance[e]);
        expected.energies.push_back(energy);
        expected.energy += energy;
        expected.descriptors.insert(expected.descriptors.end(), s[i].begin(), s[i].end());
    }
    return expected;
}

// ---- the backend ----

struct Found {
    double energy = NAN;
    Numbers forces, virial, energies, virials, descriptors;

    Found(size_t atoms, size_t width)
        : forces(3 * atoms, NAN),
          virial(9, NAN),
          energies(atoms, NAN),
          virials(9 * atoms, NAN),
          descriptors(width * atoms, NAN) {}
    Outputs outputs() {
        return {&energy, forces.data(), virial.data(), energies.data(), virials.data(), descriptors.data()};
    }
    bool operator==(const Found&) const = default;
};
Found evaluate(Evaluator& evaluator, const Weights& weights, const System& system) {
    Found found(system.numbers.size(), static_cast<size_t>(weights.hidden));
    ThreadTeam team(1);
    evaluator.evaluate(system.view(), {}, found.outputs(), team);
    return found;
}

Numbers forces_by_differences(const Weights& weights, System system, const std::vector<size_t>& coordinates) {
    Numbers forces;
    for (const size_t i : coordinates) {
        const double before = system.positions[i], step = 1e-4;
        const auto at = [&](double x) {
            system.positions[i] = x;
            return evaluate_plainly(weights, system).energy;
        };
        forces.push_back(
            -(8 * (at(before + step) - at(before - step)) - (at(before + 2 * step) - at(before - 2 * step))) /
            (12 * step));
        system.positions[i] = before;
    }
    return forces;
}
double virial_by_differences(const Weights& weights, const System& system, size_t row, size_t column) {
    const auto at = [&](double strain) {
        System strained = system;
        for (size_t i = 0; i < system.numbers.size(); ++i)
            strained.positions[3 * i + row] += strain * system.positions[3 * i + column];
        for (size_t k = 0; k < 3; ++k) strained.cell[k][row] += strain * system.cell[k][column];
        return evaluate_plainly(weights, strained).energy;
    };
    const double step = 1e-4;
    return -(8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
}

struct Case {
    int width, blocks, radial;
    bool has_repulsion;
    int atoms;
    double box;
    bool is_periodic;
};

void check_case(const Case& each, bool is_mixed, bool checks_derivatives, const Optimizations& optimizations = {}) {
    CAPTURE(each.width);
    CAPTURE(each.blocks);
    CAPTURE(is_mixed);
    const auto weights = random_weights(7, each.width, each.blocks, each.radial, each.has_repulsion);
    const System system = random_system(11, each.atoms, each.box, each.is_periodic);
    BackendOptions options = test::backend(is_mixed);
    options.neighbor_skin = optimizations.neighbor_grid ? 0.5 : 0;
    options.optimizations = optimizations;
    const auto evaluator = painn::gpu::make_gpu_evaluator(weights, options);
    const Found found = evaluate(*evaluator, *weights, system);
    const Expected expected = evaluate_plainly(*weights, system);
    const double scale = is_mixed ? 1 : 1e-5;
    CHECK(std::abs(found.energy - expected.energy) <= scale * 1e-5 * static_cast<double>(each.atoms));
    CHECK_ALL_CLOSE(found.energies, expected.energies, scale * 1e-5);
    CHECK_ALL_CLOSE(found.descriptors, expected.descriptors, scale * 1e-4);
    CHECK(evaluate(*evaluator, *weights, system) == found);
    if (!checks_derivatives) return;
    std::vector<size_t> coordinates;
    for (size_t i = 0; i < found.forces.size(); i += std::max<size_t>(1, found.forces.size() / 3))
        coordinates.push_back(i);
    Numbers some;
    for (const size_t i : coordinates) some.push_back(found.forces[i]);
    CHECK_ALL_CLOSE(some, forces_by_differences(*weights, system, coordinates), is_mixed ? 1e-4 : 1e-7);
    const double xy = virial_by_differences(*weights, system, 0, 1), zz = virial_by_differences(*weights, system, 2, 2);
    CHECK(std::abs(found.virial[1] - xy) <= (is_mixed ? 1e-3 : 1e-6));
    CHECK(std::abs(found.virial[8] - zz) <= (is_mixed ? 1e-3 : 1e-6));
    Numbers sum(9, 0.0);
    for (size_t i = 0; i < found.virials.size(); ++i) sum[i % 9] += found.virials[i];
    CHECK_ALL_CLOSE(sum, found.virial, 1e-8);
}

}  // namespace

TEST_CASE("energies and derivatives of all widths in fp64" * kTakesMinutes) {
    check_case({32, 1, 3, false, 5, 3.0, false}, false, true);
    check_case({32, 2, 7, true, 7, 3.0, false}, false, true);
    check_case({32, 3, 20, true, 19, 5.5, true}, false, true);
    check_case({64, 3, 8, true, 5, 2.5, false}, false, true);
    check_case({128, 2, 20, false, 5, 2.6, false}, false, true);
    check_case({256, 2, 5, true, 3, 2.0, false}, false, false);
}

TEST_CASE("energies and derivatives of all widths in mixed precision" * kTakesMinutes) {
    check_case({32, 3, 20, true, 19, 5.5, true}, true, true);
    check_case({64, 2, 8, true, 6, 2.8, false}, true, true);
    check_case({128, 3, 20, true, 6, 2.8, false}, true, true);
    check_case({256, 2, 5, false, 3, 2.0, false}, true, true);
    check_case({64, 2, 40, true, 70, 6.0, true}, true, false);  // more than one chunk of edges and steps of functions
}

TEST_CASE("the shapes of kernels for many atoms") {
    painn::gpu::chosen_few_atoms = 0;
    for (const int64_t some : {int64_t{512}, int64_t{0}}) {
        painn::gpu::chosen_some_atoms = some;
        check_case({32, 2, 7, true, 70, some == 0 ? 9.0 : 6.0, true}, true,
                   true);  // thinner: these shapes differ by atoms, not by edges
        check_case({64, 2, 8, true, 6, 2.8, false}, true, true);
        check_case({128, 2, 20, true, 5, 2.8, false}, true, false);
    }
    check_case({256, 2, 5, false, 3, 2.0, false}, true, true);
    check_case({32, 2, 7, true, 20, 6.0, true}, false, true);
    check_case({128, 2, 20, true, 5, 2.8, false}, false, true);
    painn::gpu::chosen_few_atoms = painn::gpu::chosen_some_atoms = 512;
}

TEST_CASE("messages stage by stage, and all optimisations off") {
    const Optimizations not_fused = {.fused_messages = false};
    check_case({32, 1, 3, false, 5, 3.0, false}, false, true, not_fused);
    check_case({32, 2, 7, true, 19, 5.5, true}, false, true, not_fused);
    check_case({32, 3, 20, true, 19, 5.5, true}, true, true, not_fused);
    check_case({64, 2, 8, true, 6, 2.8, false}, true, true, not_fused);
    check_case({128, 2, 20, true, 5, 2.6, false}, true, true, not_fused);
    check_case({256, 2, 64, false, 3, 2.0, false}, true, false, not_fused);
    check_case({32, 2, 7, true, 19, 5.5, true}, true, true, {false, false, false});

    // They do go through memory: 11 rows of each edge.
    const auto weights = random_weights(7, 32, 2, 7, true);
    for (const bool is_mixed : {true, false}) {
        BackendOptions options = test::backend(is_mixed);
        const auto bytes = [&](bool is_fused) {
            options.optimizations.fused_messages = is_fused;
            return painn::gpu::make_gpu_evaluator(weights, options)
                ->memory_forecasts()
                ->forecast_memory(64, 4096)
                .least;
        };
        CHECK(bytes(false) - bytes(true) == 4096 * 11 * 32 * (is_mixed ? 4 : 8));
    }
}

TEST_CASE("mixed precision has the errors of single precision: all numbers against fp64") {
    for (const int width : {32, 128}) {
        CAPTURE(width);
        const auto weights = random_weights(21, width, 3, 20, true);
        const System system = random_system(22, 12, 4.5, true);
        BackendOptions options = test::backend(true);
        const Found mixed = evaluate(*painn::gpu::make_gpu_evaluator(weights, options), *weights, system);
        options.precision = Precision::fp64;
        const Found exact = evaluate(*painn::gpu::make_gpu_evaluator(weights, options), *weights, system);
        double largest = 0, error = 0;
        for (size_t i = 0; i < exact.forces.size(); ++i) {
            largest = std::max(largest, std::abs(exact.forces[i]));
            error = std::max(error, std::abs(mixed.forces[i] - exact.forces[i]));
        }
        MESSAGE("largest force " << largest << ", error " << error);
        CHECK_ALL_CLOSE(mixed.forces, exact.forces, 3e-6 * largest);
        CHECK_ALL_CLOSE(mixed.virials, exact.virials, 2e-5 * largest);
        CHECK_ALL_CLOSE(mixed.energies, exact.energies, 1e-5);
    }
}

// The largest differences of `fast` from fp64, of all numbers. `sizes` are those of sizes.h.
void check_fast(const Weights& weights, const System& system, const Optimizations& optimizations = {}) {
    BackendOptions options = test::backend(false);
    options.optimizations = optimizations;
    const auto shared = std::make_shared<const Weights>(weights);
    const Found exact = evaluate(*painn::gpu::make_gpu_evaluator(shared, options), weights, system);
    options.precision = Precision::fast;
    const auto evaluator = painn::gpu::make_gpu_evaluator(shared, options);
    const Found fast = evaluate(*evaluator, weights, system);
    double largest = 0, error = 0;
    for (size_t i = 0; i < exact.forces.size(); ++i) {
        largest = std::max(largest, std::abs(exact.forces[i]));
        error = std::max(error, std::abs(fast.forces[i] - exact.forces[i]));
    }
    MESSAGE("largest force " << largest << ", error " << error);
    CHECK_ALL_CLOSE(fast.forces, exact.forces, 2e-3 * largest);
    CHECK_ALL_CLOSE(fast.virials, exact.virials, 5e-3 * largest);
    CHECK_ALL_CLOSE(fast.energies, exact.energies, 5e-3);
    CHECK_ALL_CLOSE(fast.descriptors, exact.descriptors, 2e-2);
    Numbers sum(3, 0.0);
    for (size_t i = 0; i < fast.forces.size(); ++i) sum[i % 3] += fast.forces[i];
    CHECK_ALL_CLOSE(sum, Numbers(3, 0.0), 1e-9 * largest);  // what an edge gives one atom, it takes from another
    CHECK(evaluate(*evaluator, weights, system) == fast);
}

TEST_CASE("fast has the errors of half precision: all numbers against fp64") {
    for (const int64_t few : {int64_t{512}, int64_t{0}}) {
        painn::gpu::chosen_few_atoms = painn::gpu::chosen_some_atoms = few;
        CAPTURE(few);
        check_fast(*random_weights(21, 32, 3, 20, true), random_system(22, 12, 4.5, true));
        check_fast(*random_weights(22, 128, 3, 20, true), random_system(23, 7, 3.0, false));
        check_fast(*random_weights(23, 64, 2, 7, true), random_system(24, 9, 3.5, true));  // one half step of functions
        check_fast(*random_weights(24, 32, 2, 40, false), random_system(25, 70, 6.0, true));  // steps, and many edges
    }
    painn::gpu::chosen_few_atoms = 0;
    painn::gpu::chosen_some_atoms = 512;
    check_fast(*random_weights(26, 64, 2, 20, true), random_system(27, 6, 2.8, false));
    painn::gpu::chosen_few_atoms = 512;
    check_fast(*random_weights(25, 256, 2, 15, true), random_system(26, 4, 2.4, false));
}

TEST_CASE("fast without fused messages is mixed") {
    const auto weights = random_weights(7, 32, 2, 7, true);
    const System system = random_system(11, 9, 4.0, true);
    BackendOptions options = test::backend(true);
    options.optimizations.fused_messages = false;
    const Found mixed = evaluate(*painn::gpu::make_gpu_evaluator(weights, options), *weights, system);
    options.precision = Precision::fast;
    CHECK(evaluate(*painn::gpu::make_gpu_evaluator(weights, options), *weights, system) == mixed);
}

TEST_CASE("what is too large for half precision is not a finite number in the results of fast") {
    Weights weights = *random_weights(21, 32, 2, 20, false);
    const System system = random_system(22, 5, 3.0, false);
    BackendOptions options = test::backend(false);
    options.precision = Precision::fast;
    for (double& w : weights.blocks[1].message_output.bias) w = 1e6;  // atoms send about as much
    const Found fast =
        evaluate(*painn::gpu::make_gpu_evaluator(std::make_shared<const Weights>(weights), options), weights, system);
    CHECK(!std::isfinite(fast.energy));
    CHECK(std::none_of(fast.forces.begin(), fast.forces.end(), [](double x) { return std::isfinite(x); }));
}

TEST_CASE("a step that is profiled gives the same bits, and names its stages") {
    const auto weights = random_weights(7, 32, 2, 6, true);
    const System system = random_system(5, 12, 4.0, false);
    const auto evaluator = painn::gpu::make_gpu_evaluator(weights, test::backend(true));
    const Found plain = evaluate(*evaluator, *weights, system);
    StageProfile profile;
    ThreadTeam team(1);
    team.set_profile(&profile);
    Numbers forces(plain.forces.size(), NAN);
    Outputs outputs;
    outputs.forces = forces.data();
    for (int64_t calls = 1; calls <= 2; ++calls) {
        evaluator->evaluate(system.view(), {}, outputs, team);
        CHECK(forces == plain.forces);
        const std::vector<StageLog::Sum>& sums = profile.device().sums();
        for (const Stage& stage :
             {Stage{"neighbour search"}, Stage{"edges", Direction::forward}, Stage{"messages", Direction::forward, 1},
              Stage{"update of atoms", Direction::reverse, 0}, Stage{"forces", Direction::reverse},
              Stage{"sums and results"}})
            CHECK(std::count_if(sums.begin(), sums.end(), [&](const StageLog::Sum& sum) {
                      return sum.stage == stage && sum.calls == calls;
                  }) == 1);
    }
    team.set_profile(nullptr);
    evaluator->evaluate(system.view(), {}, outputs, team);
    CHECK(profile.device().sums().front().calls == 2);
}

TEST_CASE("a domain whose ghosts are images of its own atoms gives what the periodic system gives") {
    for (const Precision precision : {Precision::fast, Precision::mixed, Precision::fp64}) {
        CAPTURE(static_cast<int>(precision));
        const auto weights = random_weights(17, 32, 3, 7, true);
        const System system = random_system(19, 14, 5.0, true);
        BackendOptions options;
        options.precision = precision;
        const auto evaluator = painn::gpu::make_gpu_evaluator(weights, options);
        const Found whole = evaluate(*evaluator, *weights, system);

        test::ImageDomain images(system, weights->cutoff);
        Domain domain = images.domain();
        const size_t own = images.own_count;
        for (int repeat = 0; repeat < 7; ++repeat) {
            Found part(images.numbers.size(), static_cast<size_t>(weights->hidden));
            part.energies.resize(own);
            part.descriptors.resize(own * static_cast<size_t>(weights->hidden));
            ThreadTeam team(1);
            domain.halo.transport = repeat < 2    ? RowTransport::host
                                    : repeat == 2 ? RowTransport::device
                                    : repeat < 5  ? RowTransport::shared
                                                  : RowTransport::window;
            evaluator->domains()->evaluate_domain(domain, {}, part.outputs(), team);
            // Twice for each block but the first, and once for addresses where memory is shared.
            CHECK(images.loop.count == static_cast<size_t>(4 * (repeat + 1) + (repeat < 3 ? 0 : repeat < 5 ? 1 : 2)));
            images.add_ghosts(part.forces, 3);
            images.add_ghosts(part.virials, 9);
            // Rows of ghosts are those of their owners, so in `fast` too only the order of sums differs.
            const double tolerance = precision == Precision::fp64 ? 1e-10 : precision == Precision::mixed ? 2e-5 : 1e-2;
            CHECK(std::abs(part.energy - whole.energy) <= tolerance);
            CHECK_ALL_CLOSE(part.energies, whole.energies, tolerance);
            CHECK_ALL_CLOSE(part.forces, whole.forces, tolerance);
            CHECK_ALL_CLOSE(part.virial, whole.virial, tolerance);
            CHECK_ALL_CLOSE(part.virials, whole.virials, tolerance);
            CHECK_ALL_CLOSE(part.descriptors, whole.descriptors, tolerance);
            if (repeat == 1)
                CHECK(evaluate(*evaluator, *weights, system) == whole);  // the domain's candidates are forgotten
        }
    }
}

TEST_CASE("memory is forecast: with it a system runs, with a hundredth less it is refused") {
    const auto weights = random_weights(9, 32, 2, 6, true);
    const System system = random_system(11, 24, 4.0, true);
    BackendOptions options = test::backend(true);
    options.neighbor_skin = 0.5;
    CHECK(painn::gpu::make_gpu_evaluator(weights, options)->memory_forecasts()->forecast_radius() ==
          weights->cutoff + options.neighbor_skin);
    NeighborOptions within;
    within.cutoff = weights->cutoff;  // the emulated list has room for twice the edges, and takes no memory of its own
    const int64_t atoms = static_cast<int64_t>(system.numbers.size()),
                  edges = 2 * static_cast<int64_t>(brute_force_neighbors(system.view(), within).sender.size()) + 64;
    const MemoryForecast forecast =
        painn::gpu::make_gpu_evaluator(weights, options)->memory_forecasts()->forecast_memory(atoms, edges);
    CHECK(forecast.least > 0);
    CHECK(forecast.usual > forecast.least);
    CHECK(forecast.usual < 1.13 * static_cast<double>(forecast.least));
    const auto run = [&](int64_t limit) {
        options.gpu_memory_limit_bytes = limit;
        Found found(system.numbers.size(), 0);
        Outputs outputs = found.outputs();
        outputs.atom_virials = outputs.descriptors = nullptr;
        ThreadTeam team(1);
        painn::gpu::make_gpu_evaluator(weights, options)->evaluate(system.view(), {}, outputs, team);
        return found.energy;
    };
    CHECK(std::isfinite(run(forecast.least)));
    CHECK_THROWS_AS(run(forecast.least * 99 / 100), Error);
}

TEST_CASE("no atoms, one atom, no edges, atoms at one place, and what is wanted") {
    const auto weights = random_weights(9, 32, 2, 6, true);
    for (const bool is_mixed : {true, false}) {
        BackendOptions options = test::backend(is_mixed);
        options.neighbor_skin = 0.3;
        const auto evaluator = painn::gpu::make_gpu_evaluator(weights, options);
        System system;
        for (int repeat = 0; repeat < 2; ++repeat) CHECK(evaluate(*evaluator, *weights, system).energy == 0);
        system = {{8}, {0.5, 0, 0}};
        const double tolerance = is_mixed ? 1e-5 : 1e-9;
        for (int repeat = 0; repeat < 2; ++repeat) {
            const Found one = evaluate(*evaluator, *weights, system);
            CHECK(std::abs(one.energy - evaluate_plainly(*weights, system).energy) <= tolerance);
            CHECK(one.forces == Numbers(3, 0.0));
        }
        system = {{8, 1, 1}, {0, 0, 0, 50, 0, 0, 51, 0.2, 0}};  // an atom without edges beside two with
        CHECK_ALL_CLOSE(evaluate(*evaluator, *weights, system).energies, evaluate_plainly(*weights, system).energies,
                        tolerance);
        system.positions = {0, 0, 0, 50, 0, 0, 50, 0, 0};
        CHECK_THROWS(evaluate(*evaluator, *weights, system));
        system.positions = {0, 0, 0, 50, 0, 0, 51, 0.2, 0};
        const Found all = evaluate(*evaluator, *weights, system);
        double energy = NAN;
        Outputs only_energy;
        only_energy.energy = &energy;
        ThreadTeam team(1);
        evaluator->evaluate(system.view(), {}, only_energy, team);
        CHECK(energy == all.energy);
        CHECK(evaluate(*evaluator, *weights, system) == all);
    }
}

TEST_CASE("systems evaluated together give what they give alone") {
    const auto weights = random_weights(15, 32, 2, 6, true);
    std::vector<System> systems = {random_system(1, 5, 3.0, false), System{}, random_system(2, 9, 4.5, true),
                                   random_system(3, 1, 3.0, false)};
    BackendOptions options = test::backend(false);
    const auto evaluator = painn::gpu::make_gpu_evaluator(weights, options),
               alone = painn::gpu::make_gpu_evaluator(weights, options);
    // The edges of all, numbered through.
    std::vector<int64_t> first = {0}, reverse;
    std::vector<int32_t> sender;
    Numbers vector, distance;
    std::vector<SystemView> views;
    std::vector<Found> found;
    ThreadTeam team(1);
    int64_t atoms = 0;
    for (const System& system : systems) {
        views.push_back(system.view());
        found.emplace_back(system.numbers.size(), 32);
        NeighborOptions neighbor_options;
        neighbor_options.cutoff = weights->cutoff;
        neighbor_options.want_reverse = true;
        NeighborList list(neighbor_options);
        list.update(views.back(), team);
        const Edges& edges = list.edges();
        const int64_t edges_before = first.back();
        for (int64_t i = 0; i < edges.atom_count; ++i) first.push_back(edges_before + edges.first[i + 1]);
        for (int64_t e = 0; e < edges.edge_count; ++e) {
            sender.push_back(edges.sender[e] + static_cast<int32_t>(atoms));
            reverse.push_back(edges.reverse[e] + edges_before);
            distance.push_back(edges.distance[e]);
            vector.insert(vector.end(), edges.vector + 3 * e, edges.vector + 3 * e + 3);
        }
        atoms += edges.atom_count;
    }
    std::vector<Outputs> outputs;
    for (Found& each : found) outputs.push_back(each.outputs());
    const Edges joined = {atoms,   first.back(),  first.data(),    sender.data(),
                          nullptr, vector.data(), distance.data(), reverse.data()};
    for (int repeat = 0; repeat < 2; ++repeat) evaluator->batches()->evaluate_batch(views, joined, outputs, team);
    for (size_t i = 0; i < systems.size(); ++i) {
        const Found expected = evaluate(*alone, *weights, systems[i]);
        CHECK(std::abs(found[i].energy - expected.energy) <= 1e-9);
        CHECK_ALL_CLOSE(found[i].forces, expected.forces, 1e-10);
        CHECK_ALL_CLOSE(found[i].virials, expected.virials, 1e-10);
        CHECK_ALL_CLOSE(found[i].descriptors, expected.descriptors, 1e-11);
    }
}

TEST_CASE("molecules evaluated together find their own neighbours") {
    const auto weights = random_weights(15, 32, 2, 6, true);
    std::vector<System> systems = {random_system(1, 5, 3.0, false), System{}, random_system(2, 9, 4.5, false),
                                   random_system(3, 1, 3.0, false)};
    BackendOptions options = test::backend(false);
    options.neighbor_skin = 0.5;
    const auto evaluator = painn::gpu::make_gpu_evaluator(weights, options),
               alone = painn::gpu::make_gpu_evaluator(weights, options);
    ThreadTeam team(1);
    for (int step = 0; step < 3; ++step) {
        std::vector<SystemView> views;
        std::vector<Found> found;
        std::vector<Outputs> outputs;
        for (const System& system : systems) {
            views.push_back(system.view());
            found.emplace_back(system.numbers.size(), 32);
        }
        for (Found& each : found) outputs.push_back(each.outputs());
        CHECK(!evaluator->batches()->needs_batch_edges(views));
        evaluator->batches()->evaluate_batch(views, {}, outputs, team);
        for (size_t i = 0; i < systems.size(); ++i) {
            const Found expected = evaluate(*alone, *weights, systems[i]);
            CHECK(std::abs(found[i].energy - expected.energy) <= 1e-9);
            CHECK_ALL_CLOSE(found[i].forces, expected.forces, 1e-9);
            CHECK_ALL_CLOSE(found[i].virials, expected.virials, 1e-9);
        }
        for (double& x : systems[2].positions) x += step == 0 ? 0.01 : 20;  // the same candidates, then a new search
    }
}

TEST_CASE("widths that kernels are not compiled for are refused by name") {
    const auto weights = random_weights(1, 96, 1, 3, false);
    CHECK(painn::gpu::why_not_on_gpu(*weights).find("96") != std::string::npos);
    CHECK_THROWS(painn::gpu::make_gpu_evaluator(weights, test::backend(true)));
}
