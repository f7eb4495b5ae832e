// SPDX-License-Identifier: MIT
// The built-in model, through a session: derivatives against finite differences, and the symmetries that every model
// has.
#include "close.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "core/error.h"
#include "engine/session.h"
#include "neighbors/lattice.h"

using namespace mlff;

namespace {

struct Atoms {
    std::vector<int32_t> numbers;
    std::vector<double> positions;
    Mat3 cell{};
    std::array<bool, 3> periodic{};

    SystemView view() const {
        SystemView system;
        system.atom_count = static_cast<int64_t>(numbers.size());
        system.atomic_numbers = numbers.data();
        system.positions = positions.data();
        system.cell = cell;
        system.periodic = periodic;
        return system;
    }
};

struct Found {
    double energy = 0;
    std::vector<double> forces, atom_energies, atom_virials;
    std::array<double, 9> virial{};
    std::array<double, 6> stress{};
};

Found evaluate(Session& session, const Atoms& atoms) {
    Found found;
    found.forces.resize(atoms.positions.size());
    found.atom_energies.resize(atoms.numbers.size());
    found.atom_virials.resize(9 * atoms.numbers.size());
    const SystemView system = atoms.view();
    Results results{{&found.energy, found.forces.data(), found.virial.data(), found.atom_energies.data(),
                     found.atom_virials.data()},
                    system.is_periodic() ? found.stress.data() : nullptr};
    session.evaluate({&system, 1}, {&results, 1});
    return found;
}

// A random crystal of mixed elements in a skewed cell, no two atoms closer than 0.7 angstrom.
Atoms random_crystal(unsigned seed, int count) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    Atoms atoms;
    atoms.cell = {{{6.1, 0.3, -0.2}, {1.1, 5.4, 0.4}, {-0.8, 0.9, 6.6}}};
    atoms.periodic = {true, true, true};
    const int elements[] = {1, 6, 8, 14};
    while (static_cast<int>(atoms.numbers.size()) < count) {
        Vec3 candidate{};
        for (size_t k = 0; k < 3; ++k) {
            const double fraction = uniform(random);
            for (size_t a = 0; a < 3; ++a) candidate[a] += fraction * atoms.cell[k][a];
        }
        bool is_free = true;
        for (size_t i = 0; i < atoms.numbers.size(); ++i)
            is_free &= std::hypot(candidate[0] - atoms.positions[3 * i], candidate[1] - atoms.positions[3 * i + 1],
                                  candidate[2] - atoms.positions[3 * i + 2]) > 0.7;
        if (!is_free) continue;
        atoms.positions.insert(atoms.positions.end(), candidate.begin(), candidate.end());
        atoms.numbers.push_back(elements[random() % 4]);
    }
    return atoms;
}

Atoms strained(const Atoms& atoms, int a, int b, double amount) {
    Atoms result = atoms;
    const auto apply = [&](double* v) {  // symmetric strain
        const double va = v[a], vb = v[b];
        v[a] += 0.5 * amount * vb;
        v[b] += 0.5 * amount * va;
    };
    for (size_t i = 0; i < result.positions.size(); i += 3) apply(result.positions.data() + i);
    for (Vec3& row : result.cell) apply(row.data());
    return result;
}

}  // namespace

TEST_CASE("forces are the slope of the energy") {
    Session session(load_model("analytic"), {});
    for (unsigned seed : {1u, 2u, 3u}) {
        Atoms atoms = random_crystal(seed, 12);
        if (seed == 3) atoms.periodic = {false, true, false};
        const Found found = evaluate(session, atoms);
        std::vector<double> expected(found.forces.size());
        constexpr double kStep = 1e-5;
        for (size_t i = 0; i < expected.size(); ++i) {
            const double before = atoms.positions[i];
            atoms.positions[i] = before + kStep;
            const double above = evaluate(session, atoms).energy;
            atoms.positions[i] = before - kStep;
            expected[i] = -(above - evaluate(session, atoms).energy) / (2 * kStep);
            atoms.positions[i] = before;
        }
        CHECK_ALL_CLOSE(found.forces, expected, 1e-6);
    }
}

TEST_CASE("virial and stress are the slope under strain") {
    Session session(load_model("analytic"), {});
    const Atoms atoms = random_crystal(5, 10);
    const Found found = evaluate(session, atoms);
    constexpr double kStep = 1e-6;
    std::array<double, 9> expected{};
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
            const double above = evaluate(session, strained(atoms, a, b, kStep)).energy;
            const double below = evaluate(session, strained(atoms, a, b, -kStep)).energy;
            expected[static_cast<size_t>(3 * a + b)] = -(above - below) / (2 * kStep);
        }
    CHECK_ALL_CLOSE(found.virial, expected, 1e-5);
    const double volume = stress_volume(atoms.view(), 5.0);
    const int voigt[6] = {0, 4, 8, 5, 2, 1};
    for (size_t k = 0; k < 6; ++k)
        CHECK(test::is_close(found.stress[k], -found.virial[static_cast<size_t>(voigt[k])] / volume, 1e-15));
}

TEST_CASE("per-atom parts add up") {
    Session session(load_model("analytic"), {});
    const Found found = evaluate(session, random_crystal(6, 20));
    CHECK(test::is_close(std::accumulate(found.atom_energies.begin(), found.atom_energies.end(), 0.0), found.energy,
                         1e-11));
    std::array<double, 9> sum{};
    for (size_t i = 0; i < found.atom_virials.size(); ++i) sum[i % 9] += found.atom_virials[i];
    CHECK_ALL_CLOSE(sum, found.virial, 1e-10);
    for (size_t k = 0; k < 3; ++k) {
        double total = 0;
        for (size_t i = k; i < found.forces.size(); i += 3) total += found.forces[i];
        CHECK(test::is_close(total, 0.0, 1e-10));
    }
}

TEST_CASE("translation, permutation and replication") {
    Session session(load_model("analytic"), {});
    const Atoms atoms = random_crystal(7, 9);
    const Found found = evaluate(session, atoms);

    Atoms moved = atoms;
    for (size_t i = 0; i < moved.positions.size(); ++i) moved.positions[i] += 17.3 - 5.0 * static_cast<double>(i % 3);
    CHECK_ALL_CLOSE(evaluate(session, moved).forces, found.forces, 1e-10);

    Atoms reversed = atoms;
    std::reverse(reversed.numbers.begin(), reversed.numbers.end());
    const size_t count = atoms.numbers.size();
    for (size_t i = 0; i < count; ++i)
        std::copy_n(atoms.positions.begin() + static_cast<long>(3 * (count - 1 - i)), 3,
                    reversed.positions.begin() + static_cast<long>(3 * i));
    std::vector<double> energies = evaluate(session, reversed).atom_energies;
    std::reverse(energies.begin(), energies.end());
    CHECK_ALL_CLOSE(energies, found.atom_energies, 1e-12);

    Atoms doubled = atoms;
    for (size_t i = 0; i < count; ++i) {
        doubled.numbers.push_back(atoms.numbers[i]);
        for (size_t k = 0; k < 3; ++k) doubled.positions.push_back(atoms.positions[3 * i + k] + atoms.cell[1][k]);
    }
    for (double& component : doubled.cell[1]) component *= 2;
    const Found twice = evaluate(session, doubled);
    CHECK(test::is_close(twice.energy, 2 * found.energy, 1e-10));
    CHECK_ALL_CLOSE(twice.stress, found.stress, 1e-12);
}

TEST_CASE("results do not depend on the number of threads, bit for bit") {
    const Atoms small = random_crystal(8, 14);
    Atoms atoms = small;  // large enough for several chunks
    for (int n = 1; n < 40; ++n)
        for (size_t i = 0; i < small.numbers.size(); ++i) {
            atoms.numbers.push_back(small.numbers[i]);
            for (size_t k = 0; k < 3; ++k) atoms.positions.push_back(small.positions[3 * i + k] + n * small.cell[0][k]);
        }
    for (double& component : atoms.cell[0]) component *= 40;
    SessionOptions options;
    options.thread_count = 1;
    Session one(load_model("analytic"), options);
    const Found expected = evaluate(one, atoms);
    for (int threads : {2, 3, 5}) {
        options.thread_count = threads;
        Session session(load_model("analytic"), options);
        const Found found = evaluate(session, atoms);
        CHECK(std::memcmp(&found.energy, &expected.energy, sizeof(double)) == 0);
        CHECK(found.forces == expected.forces);
        CHECK(found.virial == expected.virial);
    }
}
