// SPDX-License-Identifier: MIT
// Sums of models against the models alone, on every device: all results, batches, domains (test_domains.cpp has those
// too) and the edges of shorter cutoffs.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "close.h"
#include "core/elements.h"
#include "core/error.h"
#include "engine/session.h"
#include "gpu/runtime/gpu.h"
#include "neighbors/shorter_edges.h"
#include "test_gpu_support.h"

using namespace mlff;

namespace {

struct Atoms {
    std::vector<int32_t> numbers;
    std::vector<double> positions;
    Mat3 cell{};
    bool is_periodic = false;

    SystemView view() const {
        SystemView view;
        view.atom_count = static_cast<int64_t>(numbers.size());
        view.atomic_numbers = numbers.data();
        view.positions = positions.data();
        view.cell = cell;
        view.periodic = {is_periodic, is_periodic, is_periodic};
        return view;
    }
};

// So dense that many pairs are within the sum of their covalent radii.
Atoms dense_atoms(unsigned seed, int count, bool is_periodic) {
    std::mt19937 random(seed);
    const int side = static_cast<int>(std::ceil(std::cbrt(count)));
    constexpr double kSpacing = 1.2;
    std::uniform_real_distribution<double> shift(-0.15, 0.15);
    Atoms atoms;
    for (int i = 0; i < count; ++i) {
        atoms.numbers.push_back(std::vector<int>{1, 6, 7, 8}[random() % 4]);
        for (const int place : {i % side, i / side % side, i / side / side})
            atoms.positions.push_back(kSpacing * place + shift(random));
    }
    atoms.is_periodic = is_periodic;
    for (size_t k = 0; is_periodic && k < 3; ++k) atoms.cell[k][k] = kSpacing * side;
    return atoms;
}

struct Found {
    double energy = NAN;
    std::vector<double> forces, virial, atom_energies, atom_virials;

    explicit Found(const Atoms& atoms)
        : forces(atoms.positions.size(), NAN),
          virial(9, NAN),
          atom_energies(atoms.numbers.size(), NAN),
          atom_virials(9 * atoms.numbers.size(), NAN) {}
    Results results() {
        return {{&energy, forces.data(), virial.data(), atom_energies.data(), atom_virials.data()}, nullptr};
    }
    void add(const Found& other) {
        const auto add_all = [](std::vector<double>& to, const std::vector<double>& from) {
            for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
        };
        energy += other.energy;
        add_all(forces, other.forces);
        add_all(virial, other.virial);
        add_all(atom_energies, other.atom_energies);
        add_all(atom_virials, other.atom_virials);
    }
    double largest_force() const {
        double largest = 0;
        for (const double force : forces) largest = std::max(largest, std::abs(force));
        return largest;
    }
};

void check_same(const Found& found, const Found& expected, double tolerance) {
    const double scale = std::max(1.0, expected.largest_force()) * tolerance;
    CHECK(test::is_close(found.energy, expected.energy, scale * static_cast<double>(found.atom_energies.size())));
    CHECK_ALL_CLOSE(found.forces, expected.forces, scale);
    CHECK_ALL_CLOSE(found.virial, expected.virial, scale * static_cast<double>(found.atom_energies.size()));
    CHECK_ALL_CLOSE(found.atom_energies, expected.atom_energies, scale);
    CHECK_ALL_CLOSE(found.atom_virials, expected.atom_virials, 10 * scale);
}

SessionOptions on(const std::string& device, Precision precision) {
    SessionOptions options;
    options.device = device;
    options.precision = precision;
    options.thread_count = 2;
    return options;
}

Found evaluate(Session& session, const Atoms& atoms) {
    Found found(atoms);
    const SystemView view = atoms.view();
    const Results results = found.results();
    session.evaluate({&view, 1}, {&results, 1});
    return found;
}

// The name of a sum, and its terms.
struct Sum {
    std::string name;
    std::vector<std::string> terms;
};
// The second and the third have terms with a longer cutoff behind one with a shorter.
const Sum kSums[] = {{"builtin+zbl", {"builtin", "zbl"}},
                     {"zbl+builtin", {"zbl", "builtin"}},
                     {"self-test+builtin+zbl", {"self-test", "builtin", "zbl"}}};

void check_sums_on(const std::string& device, Precision precision, double tolerance) {
    CAPTURE(device);
    CAPTURE(precision_name(precision));
    for (const Sum& sum : kSums) {
        CAPTURE(sum.name);
        Session session(load_model(sum.name), on(device, precision));
        std::vector<Atoms> systems;
        for (const bool is_periodic : {false, true}) {
            Atoms atoms = dense_atoms(5, device == "reference" ? 12 : 40, is_periodic);
            const std::vector<int>& known = session.model().summary().elements;
            for (int32_t& z : atoms.numbers)
                if (std::find(known.begin(), known.end(), z) == known.end()) z = known.front();
            Found expected(atoms);
            for (size_t t = 0; t < sum.terms.size(); ++t) {
                Session alone(load_model(sum.terms[t]), on(device, precision));
                const Found found = evaluate(alone, atoms);
                if (t == 0)
                    expected = found;
                else
                    expected.add(found);
                CHECK(found.largest_force() > 0.1);  // every term matters
            }
            for (int repeat = 0; repeat < 3; ++repeat)  // plain, then as a graph
                check_same(evaluate(session, atoms), expected, tolerance);
            for (int i = 0; i < 4; ++i) systems.push_back(atoms);
        }
        std::vector<Found> found, alone;
        std::vector<SystemView> views;
        std::vector<Results> results;
        for (const Atoms& atoms : systems) found.emplace_back(atoms);
        for (size_t i = 0; i < systems.size(); ++i) {
            views.push_back(systems[i].view());
            results.push_back(found[i].results());
        }
        session.evaluate(views, results);
        for (size_t i = 0; i < systems.size(); ++i) check_same(found[i], evaluate(session, systems[i]), tolerance);
    }
}

Status status_of(const std::string& name) {
    try {
        load_model(name);
        return Status::ok;
    } catch (const Error& error) {
        return error.status();
    }
}

}  // namespace

TEST_CASE("sums are the sums of their terms, alone and in batches") {
    check_sums_on("reference", Precision::fp64, 1e-10);
    check_sums_on("cpu", Precision::fp64, 1e-8);
    check_sums_on("cpu", Precision::mixed, 2e-5);
}

TEST_CASE("on a GPU: sums are the sums of their terms, alone and in batches") {
    if (!has_gpu()) return;
    check_sums_on("cuda", Precision::fp64, 1e-8);
    check_sums_on("cuda", Precision::mixed, 2e-5);
}

TEST_CASE("zbl: the published formula, and forces that are its slopes") {
    Session session(load_model("zbl"), on("cpu", Precision::fp64));
    const double reach = covalent_radius(6) + covalent_radius(8),
                 length = 0.8854 * 0.529177210903 / (std::pow(6, 0.23) + std::pow(8, 0.23));
    const auto expected = [&](double r) {
        const double t = r / reach, x = r / length;
        if (t >= 1) return 0.0;
        const double screening = 0.18175 * std::exp(-3.19980 * x) + 0.50986 * std::exp(-0.94229 * x) +
                                 0.28022 * std::exp(-0.40290 * x) + 0.02817 * std::exp(-0.20162 * x);
        return 14.3996454784255 * 48 / r * screening *
               (1 - 10 * std::pow(t, 3) + 15 * std::pow(t, 4) - 6 * std::pow(t, 5));
    };
    for (const double r : {0.1, 0.5, 1.0, 1.3, 1.5}) {
        CAPTURE(r);
        const Found found = evaluate(session, {{6, 8}, {0, 0, 0, 0.6 * r, 0, 0.8 * r}});
        const double slope = (expected(r + 1e-6) - expected(r - 1e-6)) / 2e-6;
        CHECK(test::is_close(found.energy, expected(r), 1e-9 * std::max(1.0, expected(r))));
        CHECK_ALL_CLOSE(found.forces, (std::vector<double>{0.6 * slope, 0, 0.8 * slope, -0.6 * slope, 0, -0.8 * slope}),
                        1e-6 * std::max(1.0, std::abs(slope)));
    }
}

TEST_CASE("edges of a shorter cutoff are those that a search would find") {
    ThreadTeam team(2);
    const Atoms atoms = dense_atoms(9, 300, true);
    NeighborOptions options;
    options.cutoff = 4;
    options.want_shifts = false;
    options.want_reverse = true;
    NeighborList longer(options);
    longer.update(atoms.view(), team);
    ShorterEdges shorter;
    for (const double cutoff : {2.5, 4.0, 0.1}) {
        CAPTURE(cutoff);
        options.cutoff = cutoff;
        NeighborList list(options);
        list.update(atoms.view(), team);
        const Edges &found = shorter.select(longer.edges(), cutoff, team), &expected = list.edges();
        REQUIRE(found.edge_count == expected.edge_count);
        for (int64_t atom = 0; atom < found.atom_count; ++atom) {
            REQUIRE(found.first[atom + 1] == expected.first[atom + 1]);
            // Within an atom the two searches may have found them in another order.
            double sum = 0, expected_sum = 0;
            for (int64_t e = found.first[atom]; e < found.first[atom + 1]; ++e) {
                sum += found.distance[e] * (found.sender[e] + 1);
                expected_sum += expected.distance[e] * (expected.sender[e] + 1);
                const int64_t back = found.reverse[e];
                REQUIRE(back >= found.first[found.sender[e]]);
                REQUIRE(back < found.first[found.sender[e] + 1]);
                CHECK(found.sender[back] == atom);
                for (int64_t k = 0; k < 3; ++k) CHECK(found.vector[3 * back + k] == -found.vector[3 * e + k]);
            }
            CHECK(test::is_close(sum, expected_sum, 1e-9 * std::max(1.0, expected_sum)));
        }
    }
}

TEST_CASE("sums have terms that find their neighbours themselves") {
    const std::string terms[] = {"self-test", "d3:pbe", "zbl"};
    const Sum sums[] = {{"self-test+d3:pbe", {terms[0], terms[1]}},
                        {"d3:pbe+zbl+self-test", {terms[1], terms[2], terms[0]}},
                        {"d3:pbe+d3:b3lyp", {terms[1], "d3:b3lyp"}}};
    for (const Sum& sum : sums) {
        CAPTURE(sum.name);
        const auto model = load_model(sum.name);
        const ModelSummary& summary = model->summary();
        const bool has_cutoff = sum.name != "d3:pbe+d3:b3lyp";
        CHECK((summary.cutoff > 0) == has_cutoff);
        CHECK(summary.range == load_model("d3:pbe")->summary().range);
        CHECK(summary.reach() == summary.range);
        CHECK(summary.range > 20);
        CHECK(model->description()["range"].number() == summary.range);
        for (const std::string device : {"reference", "cpu", "cuda"}) {
            if (device == "cuda" && !has_gpu()) continue;
            CAPTURE(device);
            Session session(model, on(device, Precision::fp64));
            std::vector<Found> found;
            std::vector<Atoms> systems;
            for (const bool is_periodic : {false, true, true}) {
                if (is_periodic && device == "reference") continue;  // seconds
                Atoms atoms = dense_atoms(5, 8, is_periodic);
                for (int32_t& z : atoms.numbers)
                    if (std::find(summary.elements.begin(), summary.elements.end(), z) == summary.elements.end())
                        z = summary.elements.front();
                Found expected(atoms);
                for (size_t t = 0; t < sum.terms.size(); ++t) {
                    Session alone(load_model(sum.terms[t]), on(device, Precision::fp64));
                    const Found of_term = evaluate(alone, atoms);
                    CHECK(of_term.largest_force() > 1e-3);
                    if (t == 0)
                        expected = of_term;
                    else
                        expected.add(of_term);
                }
                check_same(evaluate(session, atoms), expected, 1e-8);
                systems.push_back(atoms);
                found.emplace_back(atoms);
            }
            std::vector<SystemView> views;
            std::vector<Results> results;
            for (size_t i = 0; i < systems.size(); ++i) {
                views.push_back(systems[i].view());
                results.push_back(found[i].results());
            }
            session.evaluate(views, results);
            for (size_t i = 0; i < systems.size(); ++i) check_same(found[i], evaluate(session, systems[i]), 1e-8);
            if (device != "cuda") CHECK((session.neighbor_build_count() > 0) == has_cutoff);
        }
    }
    CHECK(load_model("builtin+zbl")->summary().range == 0);
    CHECK(load_model("builtin+zbl")->summary().reach() == load_model("builtin")->summary().cutoff);
    CHECK(status_of("d3:pbe+") == Status::argument);
    CHECK(status_of("self-test+d3:s8=0.7,a1=0.4,a2=4.4") == Status::ok);  // commas of its own
}

TEST_CASE("names of sums that are none are refused") {
    CHECK(status_of("builtin+") == Status::argument);
    CHECK(status_of("+zbl") == Status::argument);
    CHECK(status_of("builtin+nothing-of-the-kind.model") == Status::file);
    CHECK(status_of("zbl+" MLFF_NEQUIP_GOLDEN_DIR "/p10_three_modals_all_flags.pth") ==
          Status::argument);  // which head?
    CHECK(status_of(MLFF_NEQUIP_GOLDEN_DIR "/p10_three_modals_all_flags.pth+zbl") == Status::ok);
    CHECK(status_of("builtin+zbl") == Status::ok);
    const auto sum = load_model("builtin+zbl");
    CHECK(sum->summary().elements == load_model("builtin")->summary().elements);
    CHECK(sum->summary().cutoff == load_model("builtin")->summary().cutoff);  // zbl reaches less far for these elements
}
