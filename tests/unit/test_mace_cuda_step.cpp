// SPDX-License-Identifier: MIT
// Steps on the GPU: graphs, memory, batches and threads. Tests that need a GPU pass without one, unless
// MLFF_REQUIRE_GPU is set.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "core/error.h"
#include "engine/session.h"
#include "gpu/runtime/gpu.h"
#include "mace/gpu/evaluator.h"
#include "test_gpu_support.h"
#include "test_mace_backends.h"

using namespace mace_test;

namespace {

SessionOptions on_gpu(Precision precision) {
    SessionOptions options;
    options.device = "cuda";
    options.precision = precision;
    return options;
}

// All results of one call.
struct Found {
    double energy = NAN;
    std::vector<double> forces, virial, atom_energies, atom_virials;

    explicit Found(size_t atoms)
        : forces(3 * atoms, NAN), virial(9, NAN), atom_energies(atoms, NAN), atom_virials(9 * atoms, NAN) {}
    Results results() {
        Results results;
        results.outputs = {&energy, forces.data(), virial.data(), atom_energies.data(), atom_virials.data()};
        return results;
    }
    bool operator==(const Found&) const = default;
};

Found evaluate(Session& session, const System& system) {
    Found found(system.numbers.size());
    const SystemView view = system.view();
    const Results results = found.results();
    session.evaluate({&view, 1}, {&results, 1});
    return found;
}

void shake(System& system, unsigned seed, double amplitude) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-amplitude, amplitude);
    for (double& x : system.positions) x += uniform(random);
}

System open_molecule(const mace::Weights& weights, unsigned seed, size_t atom_count) {
    System system = random_crystal(weights, seed, atom_count, 6.0);
    system.cell = {};
    system.periodic = {false, false, false};
    return system;
}

void check_same(const Found& found, const Found& expected, const Tolerance& tolerance) {
    const double atoms = static_cast<double>(std::max<size_t>(1, expected.atom_energies.size()));
    CHECK(std::abs(found.energy - expected.energy) <= tolerance.energy_per_atom * atoms);
    check_close(found.atom_energies, expected.atom_energies, tolerance.energy_per_atom);
    check_close(found.forces, expected.forces, tolerance.forces);
    check_close(found.virial, expected.virial, tolerance.virial);
    check_close(found.atom_virials, expected.atom_virials, tolerance.virial);
}

}  // namespace

TEST_CASE("a walk with a skin, by graphs and searches, stays with the CPU and saves searches") {
    if (!has_gpu()) return;
    const auto path = golden_model("p09_l2_ell3");
    const auto model = load_model(path.string());
    SessionOptions options = on_gpu(Precision::fp64);
    Session gpu(model, options);
    options.device = "cpu";
    Session cpu(model, options);
    System system = random_crystal(*mace_test::Model(path).weights, 21, 50, 9.5);
    constexpr int kSteps = 24;
    for (int step = 0; step < kSteps; ++step) {
        shake(system, static_cast<unsigned>(step), step % 8 == 7 ? 0.12 : 0.03);
        check_same(evaluate(gpu, system), evaluate(cpu, system), kDouble);
    }
    CHECK(gpu.neighbor_build_count() < kSteps / 2);  // the default skin
    for (double& x : system.positions) x += 5;       // too far: the step that found out is run again
    const int64_t builds = gpu.neighbor_build_count();
    check_same(evaluate(gpu, system), evaluate(cpu, system), kDouble);
    CHECK(gpu.neighbor_build_count() == builds + 1);
}

TEST_CASE("MACE on the GPU has the same numbers with optimisations switched off, or says that there are none") {
    if (!has_gpu()) return;
    const auto path = golden_model("p04_density_agnesi_zbl");
    const auto model = load_model(path.string());
    const mace_test::Model plain(path);
    const System system = random_crystal(*plain.weights, 30, 40, 10.0);
    for (const Precision precision : {Precision::mixed, Precision::fp64}) {
        SessionOptions options = on_gpu(precision);
        Session usual(model, options);
        const Found expected = evaluate(usual, system);
        const Tolerance& tolerance = precision == Precision::mixed ? kMixed : kDouble;
        for (const Optimizations& each : {Optimizations{false, true, true}, Optimizations{true, false, true},
                                          Optimizations{true, true, false}, Optimizations{false, false, false}}) {
            CAPTURE(each.graphs);
            CAPTURE(each.neighbor_grid);
            CAPTURE(each.fused_messages);
            options.optimizations = each;
            if (precision == Precision::fp64 && !each.fused_messages) {
                CHECK_THROWS_WITH_AS(Session(model, options),
                                     "fused=off: this model has no fused messages in precision fp64", Error);
                continue;
            }
            Session session(model, options);
            const Found found = evaluate(session, system);
            check_same(found, expected, tolerance);
            CHECK(evaluate(session, system) == found);
            CHECK(session.neighbor_build_count() == (each.neighbor_grid ? 1 : 2));
        }
    }
}

TEST_CASE("sessions that alternate between systems and outputs repeat their bits") {
    if (!has_gpu()) return;
    const auto path = golden_model("p04_density_agnesi_zbl");
    const auto model = load_model(path.string());
    const mace_test::Model plain(path);
    const mace::Weights& weights = *plain.weights;
    for (const Precision precision : {Precision::mixed, Precision::fp64}) {
        Session session(model, on_gpu(precision));
        std::vector<System> systems;
        for (unsigned i = 0; i < 4; ++i) systems.push_back(random_crystal(weights, 30 + i, 10 + 25 * i, 9.0 + i));
        systems.push_back(open_molecule(weights, 35, 12));
        System alone = systems[1];  // same number of atoms and cell as another, other elements
        std::rotate(alone.numbers.begin(), alone.numbers.begin() + 1, alone.numbers.end());
        systems.push_back(alone);
        std::vector<Found> first;
        for (const System& system : systems) first.push_back(evaluate(session, system));
        for (int round = 0; round < 4; ++round)
            for (size_t i = 0; i < systems.size(); ++i) {
                CAPTURE(round);
                CAPTURE(i);
                CHECK(evaluate(session, systems[i]) == first[i]);
                double energy = NAN;
                Results only_energy;
                only_energy.outputs.energy = &energy;
                const SystemView view = systems[i].view();
                session.evaluate({&view, 1}, {&only_energy, 1});
                CHECK(energy == first[i].energy);
            }
        Session another(model, on_gpu(precision));
        for (size_t i = systems.size(); i-- > 0;) CHECK(evaluate(another, systems[i]) == first[i]);
    }
}

TEST_CASE("a system over the limit of memory is refused with what would fit, and the next one is evaluated") {
    if (!has_gpu()) return;
    const auto path = golden_model("p09_l2_ell3");
    const auto model = load_model(path.string());
    const mace_test::Model plain(path);
    const mace::Weights& weights = *plain.weights;
    const System small = random_crystal(weights, 50, 8, 6.0), large = random_crystal(weights, 51, 900, 26.0);
    Session unlimited(model, on_gpu(Precision::fp64));
    const Found expected = evaluate(unlimited, small);
    // Nothing fits; the atoms of the large system do not; its atoms do, but not its edges.
    for (const int64_t limit : {int64_t{1} << 10, int64_t{2} << 20, int64_t{24} << 20}) {
        CAPTURE(limit);
        SessionOptions options = on_gpu(Precision::fp64);
        options.gpu_memory_limit_bytes = limit;
        Session session(model, options);
        const bool is_small_enough = limit > (int64_t{1} << 20);
        if (is_small_enough) CHECK(evaluate(session, small) == expected);
        for (int repeat = 0; repeat < 3; ++repeat) {
            std::string message;
            try {
                evaluate(session, large);
            } catch (const Error& error) {
                CHECK(error.status() == Status::memory);
                message = error.what();
            }
            CAPTURE(message);
            CHECK(message.find("900 atoms") != std::string::npos);
            CHECK(message.find("would fit") != std::string::npos);
            CHECK((message.find("edges") != std::string::npos) == (limit == int64_t{24} << 20));
            if (is_small_enough) CHECK(evaluate(session, small) == expected);
        }
    }
}

TEST_CASE("a ragged batch of molecules and boxes on the GPU gives what single calls give, to rounding") {
    if (!has_gpu()) return;
    for (const char* name : {"p09_l2_ell3", "p04_density_agnesi_zbl", "p07_nonlinear_mh"}) {
        CAPTURE(name);
        const auto path = golden_model(name);
        const auto model = load_model(path.string());
        const mace_test::Model plain(path);
        const mace::Weights& weights = *plain.weights;
        std::vector<System> systems;
        for (unsigned i = 0; i < 12; ++i) {
            systems.push_back(open_molecule(weights, 60 + i, 1 + 2 * i));
            systems.push_back(random_crystal(weights, 80 + i, 3 + 4 * i, 7.0 + 0.3 * i));
        }
        systems.insert(systems.begin() + 3, System{});                                 // no atoms
        systems.insert(systems.begin() + 9, random_crystal(weights, 99, 1100, 28.0));  // too large to be joined
        for (const Precision precision : {Precision::mixed, Precision::fp64}) {
            SessionOptions options = on_gpu(precision);
            options.head = model->summary().heads.front();
            Session session(model, options), alone(model, options);
            for (int repeat = 0; repeat < 3; ++repeat) {  // plain launches, capture, replay
                std::vector<Found> found;
                std::vector<SystemView> views;
                std::vector<Results> results;
                for (const System& system : systems) found.emplace_back(system.numbers.size());
                for (size_t i = 0; i < systems.size(); ++i) {
                    views.push_back(systems[i].view());
                    results.push_back(found[i].results());
                }
                if (repeat == 1) results[5].outputs.forces = nullptr;  // what others want changes nothing
                session.evaluate(views, results);
                for (size_t i = 0; i < systems.size(); ++i) {
                    CAPTURE(i);
                    Found expected = evaluate(alone, systems[i]);
                    if (!results[i].outputs.forces) expected.forces = found[i].forces = {};
                    // Rounding only: the same sums over atoms in other places.
                    check_same(
                        found[i], expected,
                        precision == Precision::fp64 ? Tolerance{1e-11, 1e-10, 1e-10} : Tolerance{2e-6, 2e-6, 1e-5});
                }
            }
        }
    }
}

TEST_CASE("sessions on several threads at once give the bits they give alone") {
    if (!has_gpu()) return;
    const auto path = golden_model("p09_l2_ell3");
    const auto model = load_model(path.string());
    const mace_test::Model plain(path);
    const mace::Weights& weights = *plain.weights;
    constexpr size_t kThreads = 4;
    constexpr int kSteps = 12;
    const auto walk = [&](size_t thread) {
        Session session(model, on_gpu(thread % 2 == 0 ? Precision::mixed : Precision::fp64));
        System system = random_crystal(weights, 40 + static_cast<unsigned>(thread), 30 + 20 * thread,
                                       9.0 + static_cast<double>(thread));
        std::vector<Found> found;
        for (int step = 0; step < kSteps; ++step) {
            shake(system, static_cast<unsigned>(step), step % 5 == 4 ? 0.1 : 0.03);
            found.push_back(evaluate(session, system));
        }
        return found;
    };
    std::vector<std::vector<Found>> alone, together(kThreads);
    for (size_t thread = 0; thread < kThreads; ++thread) alone.push_back(walk(thread));
    std::vector<std::thread> threads;
    for (size_t thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] { together[thread] = walk(thread); });
    for (std::thread& thread : threads) thread.join();
    for (size_t thread = 0; thread < kThreads; ++thread) CHECK(together[thread] == alone[thread]);
}
