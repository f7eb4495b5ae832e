// SPDX-License-Identifier: MIT
// DFT-D3: s-dftd3's numbers, derivatives of every stage and of whole systems against finite differences, the fast
// evaluator against the reference, names and their errors.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "close.h"
#include "core/error.h"
#include "dispersion/functions/coordination.h"
#include "dispersion/functions/references.h"
#include "dispersion/functions/triples.h"
#include "dispersion/tables/tables.h"
#include "dispersion/tables/units.h"
#include "engine/session.h"
#include "test_gpu_support.h"

namespace {

using namespace mlff;
using namespace mlff::dispersion;

struct D3Atoms {
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

struct D3Result {
    double energy = NAN;
    std::vector<double> forces, virial, atom_energies, atom_virials;
};

D3Result d3_of(Session& session, const D3Atoms& atoms) {
    D3Result found;
    found.forces.assign(atoms.positions.size(), NAN);
    found.virial.assign(9, NAN);
    found.atom_energies.assign(atoms.numbers.size(), NAN);
    found.atom_virials.assign(9 * atoms.numbers.size(), NAN);
    const SystemView system = atoms.view();
    const Results results = {{&found.energy, found.forces.data(), found.virial.data(), found.atom_energies.data(),
                              found.atom_virials.data()}};
    session.evaluate({&system, 1}, {&results, 1});
    return found;
}

Session d3_session(const std::string& name, const std::string& device = "cpu", int threads = 1,
                   Precision precision = Precision::automatic) {
    SessionOptions options;
    options.precision = precision;
    options.device = device;
    options.thread_count = threads;
    return Session(load_model(name), options);
}

nlohmann::json d3_goldens() {
    std::ifstream file(std::filesystem::path(MLFF_GOLDEN_DIR).parent_path() / "dispersion.json");
    return nlohmann::json::parse(file);
}

D3Atoms golden_atoms(const nlohmann::json& golden) {
    return {golden["numbers"], golden["positions"], golden["cell"], golden["periodic"]};
}

D3Atoms golden_named(const std::string& name) {
    const nlohmann::json goldens = d3_goldens();
    for (const auto& golden : goldens["cases"])
        if (golden["name"] == name) return golden_atoms(golden);
    FAIL("no such golden: " << name);
    return {};
}

std::vector<double> column_sums(const std::vector<double>& rows, size_t width) {
    std::vector<double> sums(width, 0.0);
    for (size_t i = 0; i < rows.size(); ++i) sums[i % width] += rows[i];
    return sums;
}

double central(const std::function<double(double)>& f, double x, double step) {
    return (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * step);
}

// Forces and virial against differences of energies. Steps are so small that no atom passes the cutoff of coordination
// numbers, where energies jump by about 1e-8 eV.
void check_d3_derivatives(const std::string& name, const D3Atoms& atoms, double tolerance) {
    CAPTURE(name);
    Session session = d3_session(name);
    const D3Result found = d3_of(session, atoms);
    std::vector<double> forces, virial;
    for (size_t i = 0; i < atoms.positions.size(); ++i)
        forces.push_back(-central(
            [&](double x) {
                D3Atoms moved = atoms;
                moved.positions[i] = x;
                return d3_of(session, moved).energy;
            },
            atoms.positions[i], 1e-4));
    CHECK_ALL_CLOSE(found.forces, forces, tolerance);
    for (size_t a = 0; a < 3; ++a)
        for (size_t b = 0; b < 3; ++b)
            virial.push_back(-central(
                [&](double strain) {
                    D3Atoms strained = atoms;
                    const auto stretch = [&](double* x) {  // symmetric, as virials are
                        const double old_a = x[a], old_b = x[b];
                        x[a] += 0.5 * strain * old_b;
                        x[b] += 0.5 * strain * old_a;
                    };
                    for (size_t i = 0; i < atoms.numbers.size(); ++i) stretch(&strained.positions[3 * i]);
                    for (auto& row : strained.cell) stretch(row.data());
                    return d3_of(session, strained).energy;
                },
                0.0, 1e-5));
    CHECK_ALL_CLOSE(found.virial, virial, 10 * tolerance);
}

void check_d3_error(const std::string& name, const std::string& words) {
    CAPTURE(name);
    std::string message;
    try {
        load_model(name);
    } catch (const Error& error) {
        CHECK(error.status() == Status::argument);
        message = error.what();
    }
    CAPTURE(message);
    CHECK(message.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("DFT-D3 gives the energies, forces and virials of s-dftd3") {
    const nlohmann::json goldens = d3_goldens();
    std::set<int> elements;
    for (const char* device : {"cpu", "reference"}) {
        CAPTURE(device);
        for (const auto& golden : goldens["cases"]) {
            const D3Atoms atoms = golden_atoms(golden);
            elements.insert(atoms.numbers.begin(), atoms.numbers.end());
            const std::string system = golden["name"];
            CAPTURE(system);
            for (const auto& result : golden["results"]) {
                const std::string model = result["model"];
                CAPTURE(model);
                Session session = d3_session(model, device);
                const D3Result found = d3_of(session, atoms);
                CHECK(std::abs(found.energy - result["energy"].get<double>()) <= 1e-9);
                CHECK_ALL_CLOSE(found.forces, result["forces"].get<std::vector<double>>(), 1e-8);
                CHECK_ALL_CLOSE(found.virial, result["virial"].get<std::vector<double>>(), 1e-8);
                CHECK_ALL_CLOSE(column_sums(found.atom_energies, 1), std::vector{found.energy}, 1e-9);
                CHECK_ALL_CLOSE(column_sums(found.atom_virials, 9), found.virial, 1e-9);
            }
        }
    }
    CHECK(elements.size() == kElementCount);
}

TEST_CASE("on a GPU: DFT-D3 gives the numbers of s-dftd3") {
    if (!has_gpu()) return;
    const nlohmann::json goldens = d3_goldens();
    int count = 0;
    for (const auto& golden : goldens["cases"]) {
        const D3Atoms atoms = golden_atoms(golden);
        const std::string system = golden["name"];
        CAPTURE(system);
        for (const auto& result : golden["results"]) {
            const std::string model = result["model"];
            CAPTURE(model);
            if (!load_model(model)->runs_on_gpu()) {
                CHECK(model.find(":atm") != std::string::npos);
                CHECK_THROWS_AS(d3_session(model, "cuda"), Error);
                continue;
            }
            ++count;
            const auto expected_forces = result["forces"].get<std::vector<double>>();
            const auto expected_virial = result["virial"].get<std::vector<double>>();
            Session session = d3_session(model, "cuda", 1, Precision::fp64), mixed = d3_session(model, "cuda");
            for (int repeat = 0; repeat < 3; ++repeat) {  // plain, then as a graph
                const D3Result found = d3_of(session, atoms), single = d3_of(mixed, atoms);
                CHECK(std::abs(found.energy - result["energy"].get<double>()) <= 1e-9);
                CHECK_ALL_CLOSE(found.forces, expected_forces, 1e-8);
                CHECK_ALL_CLOSE(found.virial, expected_virial, 1e-8);
                CHECK_ALL_CLOSE(column_sums(found.atom_energies, 1), std::vector{found.energy}, 1e-9);
                CHECK_ALL_CLOSE(column_sums(found.atom_virials, 9), found.virial, 1e-9);
                CHECK(std::abs(single.energy - found.energy) <= 1e-6 * (1 + std::abs(found.energy)));
                CHECK_ALL_CLOSE(single.forces, expected_forces, 1e-5);
                CHECK_ALL_CLOSE(single.virial, expected_virial, 1e-5 * (1 + std::abs(found.energy)));
            }
        }
    }
    CHECK(count > 10);
}

TEST_CASE("functionals have the parameters that s-dftd3 gives them") {
    const nlohmann::json goldens = d3_goldens();
    const D3Atoms dimer = golden_named("water_dimer");
    CHECK(goldens["functionals"].size() >= 150);
    for (const auto& [name, energy] : goldens["functionals"].items()) {
        CAPTURE(name);
        SessionOptions options;
        options.device = "cpu";
        options.thread_count = 1;
        Session session(load_model(name)->restricted_to({1, 8}), options);
        CHECK(std::abs(d3_of(session, dimer).energy - energy.get<double>()) <= 1e-9);
    }
}

TEST_CASE("the fast DFT-D3 gives what the reference gives, for any number of threads") {
    for (const char* name : {"d3:pbe", "d3:pbe:zero", "d3:r2scan:smooth", "d3:pbe:zero:smooth"})
        for (const char* system : {"elements_17", "triclinic", "slab", "wire", "hydrides_48"}) {
            CAPTURE(name);
            CAPTURE(system);
            if (std::string(name) == "d3:r2scan:smooth" && std::string(system) == "hydrides_48") continue;
            const D3Atoms atoms = golden_named(system);
            Session reference = d3_session(name, "reference"), one = d3_session(name),
                    three = d3_session(name, "cpu", 3);
            const D3Result expected = d3_of(reference, atoms), found = d3_of(one, atoms), again = d3_of(three, atoms);
            CHECK_ALL_CLOSE(found.atom_energies, expected.atom_energies, 1e-10);
            CHECK_ALL_CLOSE(found.forces, expected.forces, 1e-10);
            CHECK_ALL_CLOSE(found.virial, expected.virial, 1e-9);
            CHECK_ALL_CLOSE(found.atom_virials, expected.atom_virials, 1e-9);
            CHECK(std::memcmp(found.forces.data(), again.forces.data(), 8 * found.forces.size()) == 0);
            CHECK(std::memcmp(found.virial.data(), again.virial.data(), 8 * found.virial.size()) == 0);
        }
    for (const char* system : {"water_dimer", "wire", "far_apart"}) {
        CAPTURE(system);
        const D3Atoms atoms = golden_named(system);
        Session reference = d3_session("d3:pbe:atm:smooth", "reference"), fast = d3_session("d3:pbe:atm:smooth");
        const D3Result expected = d3_of(reference, atoms), found = d3_of(fast, atoms);
        CHECK_ALL_CLOSE(found.atom_energies, expected.atom_energies, 1e-10);
        CHECK_ALL_CLOSE(found.forces, expected.forces, 1e-10);
        CHECK_ALL_CLOSE(found.atom_virials, expected.atom_virials, 1e-9);
    }
}

TEST_CASE("derivatives of the formulas of DFT-D3") {
    for (const double r : {0.8, 2.1, 2.9, 4.4, 9.0}) {
        const Count<double> count = count_neighbor(2.7, r);
        CHECK(
            test::is_close(count.slope, central([](double x) { return count_neighbor(2.7, x).value; }, r, 1e-4), 1e-9));
    }
    CHECK(test::is_close(count_neighbor(2.7, 2.7).value, 0.5, 1e-15));

    const double references[5] = {0, 0.9868, 1.9985, 2.9987, 3.9844};
    for (const double n : {0.0, 0.4, 1.93, 3.5, 4.0, 6.2}) {
        double weights[5], slopes[5], sum = 0, slope_sum = 0;
        weigh_references(references, 5, n, weights, slopes);
        for (int p = 0; p < 5; ++p) {
            const auto weight = [&](double x) {
                double moved[5], unused[5];
                weigh_references(references, 5, x, moved, unused);
                return moved[p];
            };
            CHECK(test::is_close(slopes[p], central(weight, n, 1e-4), 1e-9));
            sum += weights[p], slope_sum += slopes[p];
        }
        CHECK(test::is_close(sum, 1, 1e-14));
        CHECK(test::is_close(slope_sum, 0, 1e-13));
    }
    double weights[5], slopes[5];
    weigh_references(references, 5, 1e3, weights, slopes);  // where every exponential underflows
    CHECK_ALL_CLOSE(std::vector<double>(weights, weights + 5), (std::vector<double>{0, 0, 0, 0, 1}), 0);
    CHECK_ALL_CLOSE(std::vector<double>(slopes, slopes + 5), std::vector<double>(5, 0.0), 0);

    const PairForm<double> bj{1, 3.1, 500, 4000}, zero{1, 3.1, 9.5, 7.7};
    for (const double r : {1.4, 2.6, 3.3, 7.5, 15.0}) {
        const auto bj_energy = [&](double x) { return bj_pair(bj, x * x).energy; };
        const auto zero_energy = [&](double x) { return zero_pair(zero, 7, x * x).energy; };
        const auto faded_energy = [&](double x) { return faded(bj_pair(bj, x * x), fade_out(x, 3.0, 10.0), x).energy; };
        CHECK(test::is_close(bj_pair(bj, r * r).pull * r, central(bj_energy, r, 1e-3), 1e-11));
        CHECK(test::is_close(zero_pair(zero, 7, r * r).pull * r, central(zero_energy, r, 1e-3), 1e-9));
        CHECK(test::is_close(faded(bj_pair(bj, r * r), fade_out(r, 3.0, 10.0), r).pull * r,
                             central(faded_energy, r, 1e-4), 1e-11));
    }
    CHECK(fade_out(3.0, 3.0, 10.0).value == 1);
    CHECK(fade_out(10.0, 3.0, 10.0).value == 0);

    const double distances[3] = {3.1, 4.2, 2.7};
    const auto triple = [](const double(&r)[3]) {
        return damped_triple({r[0] * r[0], r[1] * r[1], r[2] * r[2]}, 60.0, 16 / 3.0);
    };
    for (int n = 0; n < 3; ++n) {
        const auto energy = [&](double x) {
            double moved[3] = {distances[0], distances[1], distances[2]};
            moved[n] = x;
            return triple(moved).energy;
        };
        CHECK(test::is_close(triple(distances).pull[n] * distances[n], central(energy, distances[n], 1e-3), 1e-11));
    }
}

TEST_CASE("forces and virials of DFT-D3 are derivatives of its energy") {
    for (const char* name : {"d3:pbe", "d3:b3lyp:zero", "d3:pbe:atm"})
        check_d3_derivatives(name, golden_named("water_dimer"), 1e-8);
    check_d3_derivatives("d3:pbe:zero:atm", golden_named("elements_49"), 1e-8);
    check_d3_derivatives("d3:pbe:smooth", golden_named("triclinic"), 1e-7);
    check_d3_derivatives("d3:pbe:zero:smooth", golden_named("slab"), 1e-7);
    check_d3_derivatives("d3:pbe:atm:smooth", golden_named("far_apart"), 1e-8);
}

TEST_CASE("DFT-D3 does not depend on the cell that holds a crystal, or on its place") {
    const D3Atoms small = golden_named("triclinic");
    D3Atoms large = small;
    large.numbers.clear();
    large.positions.clear();
    for (int copy = 0; copy < 2; ++copy)
        for (size_t i = 0; i < small.numbers.size(); ++i) {
            large.numbers.push_back(small.numbers[i]);
            for (size_t k = 0; k < 3; ++k)
                large.positions.push_back(small.positions[3 * i + k] + copy * small.cell[0][k] + 7 * small.cell[1][k] +
                                          (k == 2 ? 0.77 : 0));
        }
    for (double& x : large.cell[0]) x *= 2;
    Session session = d3_session("d3:pbe");
    const D3Result one = d3_of(session, small), two = d3_of(session, large);
    CHECK(std::abs(two.energy - 2 * one.energy) <= 1e-9);
    CHECK_ALL_CLOSE(
        std::vector<double>(two.forces.begin(), two.forces.begin() + static_cast<ptrdiff_t>(one.forces.size())),
        one.forces, 1e-9);
    CHECK_ALL_CLOSE(
        std::vector<double>(two.forces.begin() + static_cast<ptrdiff_t>(one.forces.size()), two.forces.end()),
        one.forces, 1e-9);
}

TEST_CASE("atoms alone, atoms at the same place, and many neighbours in DFT-D3") {
    for (const char* device : {"cpu", "reference"}) {
        CAPTURE(device);
        Session session = d3_session("d3:pbe", device);
        const D3Result alone = d3_of(session, {{6}, {1, 2, 3}, {}, {}});
        CHECK(alone.energy == 0);
        CHECK_ALL_CLOSE(alone.forces, std::vector<double>(3, 0.0), 0);
        CHECK_THROWS_WITH_AS(d3_of(session, {{6, 1}, {1, 2, 3, 1, 2, 3}, {}, {}}),
                             doctest::Contains("at the same place"), Error);
        // Hydrogen in the middle of a dense cage: its coordination number is far from all references.
        D3Atoms cage{{1}, {0, 0, 0}, {}, {}};
        for (int i = 0; i < 120; ++i) {
            const double height = 1 - (2 * i + 1) / 120.0, angle = 2.399963 * i, radius = 1.2;
            const double flat = std::sqrt(1 - height * height) * radius;
            cage.numbers.push_back(6);
            cage.positions.insert(cage.positions.end(),
                                  {flat * std::cos(angle), flat * std::sin(angle), radius * height});
        }
        const D3Result dense = d3_of(session, cage);
        CHECK(std::isfinite(dense.energy));
        CHECK(dense.energy < 0);
    }
}

TEST_CASE("atoms too far away for coordinates to have a meaning are refused") {
    for (const char* device : {"cpu", "reference"})
        for (const bool is_periodic : {false, true}) {
            CAPTURE(device);
            D3Atoms atoms = {{1, 8}, {-1e308, 0, 0, 1e308, 0, 0}};
            for (size_t k = 0; k < 3; ++k) atoms.cell[k][k] = 9;
            atoms.periodic = {is_periodic, is_periodic, is_periodic};
            Session session = d3_session("d3:pbe", device);
            CHECK_THROWS_WITH_AS(d3_of(session, atoms), doctest::Contains("too far from the origin"), Error);
        }
}

TEST_CASE("on a GPU: DFT-D3 of many tiles, whose parts are few") {
    if (!has_gpu()) return;
    for (const bool is_periodic : {false, true}) {
        CAPTURE(is_periodic);
        D3Atoms atoms;
        const int side = is_periodic ? 11 : 21;  // the larger one has more than 256 tiles
        std::mt19937 random(8);
        std::uniform_real_distribution<double> shift(-0.3, 0.3);
        for (int i = 0; i < side * side * side; ++i) {
            atoms.numbers.push_back(i % 3 == 0 ? 8 : 1);
            for (const int place : {i % side, i / side % side, i / side / side})
                atoms.positions.push_back(2.2 * place + shift(random));
        }
        for (size_t k = 0; k < 3; ++k) atoms.cell[k][k] = 2.2 * side;
        atoms.periodic = {is_periodic, is_periodic, is_periodic};
        Session cpu = d3_session("d3:pbe", "cpu", 0), gpu = d3_session("d3:pbe", "cuda", 0, Precision::fp64);
        const D3Result expected = d3_of(cpu, atoms), found = d3_of(gpu, atoms);
        const auto count = static_cast<double>(atoms.numbers.size());
        CHECK(std::abs(found.energy - expected.energy) <= 1e-9 * count);
        CHECK_ALL_CLOSE(found.forces, expected.forces, 1e-8);
        CHECK_ALL_CLOSE(found.virial, expected.virial, 1e-8 * count);
        CHECK_ALL_CLOSE(found.atom_energies, expected.atom_energies, 1e-9);
        CHECK_ALL_CLOSE(found.atom_virials, expected.atom_virials, 1e-8);
        Session mixed = d3_session("d3:pbe", "cuda", 0);
        const D3Result single = d3_of(mixed, atoms);
        CHECK_ALL_CLOSE(single.forces, expected.forces, 1e-5);
        for (int repeat = 0; repeat < 5; ++repeat) CHECK(d3_of(mixed, atoms).forces == single.forces);
        // Without virials of atoms, the virial is made of other sums.
        const SystemView system = atoms.view();
        std::vector<double> virial(9, NAN);
        const Results results = {{nullptr, nullptr, virial.data()}};
        gpu.evaluate({&system, 1}, {&results, 1});
        CHECK_ALL_CLOSE(virial, expected.virial, 1e-8 * count);
        mixed.evaluate({&system, 1}, {&results, 1});
        CHECK_ALL_CLOSE(virial, expected.virial, 1e-6 * count);
    }
}

TEST_CASE("names of DFT-D3 models") {
    const auto model = load_model("d3:pbe");
    CHECK(model->summary().class_name == "Dispersion");
    CHECK(model->summary().elements.size() == kElementCount);
    CHECK(model->summary().cutoff == 0);
    CHECK(test::is_close(model->summary().reach(), 60 * kBohr, 1e-12));
    CHECK(load_model("zbl")->summary().reach() == load_model("zbl")->summary().cutoff);
    for (const char* name : {"d3:PBE", "d3:b3-lyp:zero", "d3:B97_1", "d3:bp86", "d3:pbe:atm:bj:smooth",
                             "d3:s8=1,a1=0.4,a2=4.4", "d3:s8=1,rs6=1.2:zero"})
        CHECK_NOTHROW(load_model(name));
    CHECK(damping_of_functional("pbe", DampingKind::bj) ==
          damping_of_values("s8=0.7875,a1=0.4289,a2=4.4407", DampingKind::bj));
    for (const DampingKind kind : {DampingKind::bj, DampingKind::zero})
        for (const std::string& name : functional_names(kind)) {
            CAPTURE(name);
            const Damping damping = damping_of_functional(name, kind);
            CHECK(damping == damping_of_values(values_text(damping), kind));
        }
    const auto fewer = model->restricted_to({1, 8, 99});
    REQUIRE(fewer);
    CHECK(fewer->summary().elements == std::vector<int>{1, 8});

    check_d3_error("d3:pbf", "pbe");
    check_d3_error("d3:pbf", "no D3 parameters are known");
    check_d3_error("d3:scna", "scan");
    check_d3_error("d3:r2scan:zero", "only for bj");
    check_d3_error("d3", "names no functional");
    check_d3_error("d3:", "names no functional");
    check_d3_error("d3:pbe:bjm", "no option of D3");
    check_d3_error("d3:pbe:bj:zero", "two kinds");
    check_d3_error("d3:pbe:atm:atm", "twice");
    check_d3_error("d3:s8=1,a1=0.4", "a2 is missing");
    check_d3_error("d3:s8=1,a1=0.4,a2=x", "must be a number");
    check_d3_error("d3:s8=1,a1=0.4,a2=4,s8=2", "given twice");
    check_d3_error("d3:s8=1,a1=0.4,rs6=4", "is no D3 parameter of the damping bj");
    check_d3_error("d3:s8=1,a1=0,a2=0", "not be damped");
    check_d3_error("d3:s8=1,rs6=1,alpha=13:zero", "even whole number");
}

TEST_CASE("the documentation lists all functionals of DFT-D3") {
    std::ifstream file(std::filesystem::path(MLFF_GOLDEN_DIR).parent_path().parent_path().parent_path() / "docs" /
                       "dispersion.md");
    std::set<std::string> rows;
    for (std::string line; std::getline(file, line);) rows.insert(line);
    std::set<std::string> names;
    for (const DampingKind kind : {DampingKind::bj, DampingKind::zero})
        for (const std::string& name : functional_names(kind)) names.insert(name);
    const auto cell = [](const std::string& name, DampingKind kind) {
        const std::vector<std::string> known = functional_names(kind);
        if (std::find(known.begin(), known.end(), name) == known.end()) return std::string("-");
        const Damping damping = damping_of_functional(name, kind);
        return values_text(damping);
    };
    for (const std::string& name : names) {
        const std::string row =
            "| " + name + " | " + cell(name, DampingKind::bj) + " | " + cell(name, DampingKind::zero) + " |";
        CHECK_MESSAGE(rows.count(row) == 1, "docs/dispersion.md needs the row: " << row);
    }
}
