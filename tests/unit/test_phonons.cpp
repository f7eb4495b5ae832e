// SPDX-License-Identifier: MIT
// Phonons: cells, meshes, paths, heat and files, each against what can be said without a computer.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>

#include "close.h"
#include "core/error.h"
#include "dynamics/units.h"
#include "formats/yaml.h"
#include "properties/phonons/band_path.h"
#include "properties/phonons/dynamical_matrix.h"
#include "properties/phonons/mesh.h"
#include "properties/phonons/phonopy_files.h"
#include "properties/phonons/setup.h"

using namespace mlff;
using namespace mlff::phonons;

namespace {

std::string phonon_error(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

bool says(const std::string& message, const std::string& words) { return message.find(words) != std::string::npos; }

// A chain of two kinds of atoms along x; far apart across it.
Crystal chain(double spacing, double light, double heavy) {
    Crystal crystal;
    crystal.lattice = {{{2 * spacing, 0, 0}, {0, 20, 0}, {0, 0, 20}}};
    crystal.add_atom(11, {0, 0, 0}, light);
    crystal.add_atom(17, {spacing, 0, 0}, heavy);
    return crystal;
}

// Forces of springs between neighbours along the chain, for a displacement of one atom.
std::vector<double> spring_forces(const Crystal& supercell, const Displacement& moved, double stiffness) {
    std::vector<double> forces(3 * supercell.atom_count());
    const double length = supercell.lattice[0][0], spacing = length / static_cast<double>(supercell.atom_count());
    const double from = supercell.position(static_cast<size_t>(moved.atom))[0];
    for (size_t atom = 0; atom < supercell.atom_count(); ++atom) {
        double offset = supercell.position(atom)[0] - from;
        offset -= length * std::round(offset / length);
        if (std::abs(std::abs(offset) - spacing) < 0.1) forces[3 * atom] += stiffness * moved.vector[0];
    }
    forces[3 * static_cast<size_t>(moved.atom)] -= 2 * stiffness * moved.vector[0];
    return forces;
}

}  // namespace

TEST_CASE("the dispersion of a chain of two kinds of atoms is that of the textbook") {
    bool uses_symmetry = false, are_isotopes = false;  // with spglib or with translations only
    SUBCASE("symmetry") { uses_symmetry = true; }
    SUBCASE("translations") { uses_symmetry = false; }
    SUBCASE("two isotopes of one element") { uses_symmetry = are_isotopes = true; }
    const double light = 22.99, heavy = 35.45, stiffness = 3.2, spacing = 2.5;
    Crystal unit = chain(spacing, light, heavy);
    if (are_isotopes) unit.atomic_numbers[1] = unit.atomic_numbers[0];
    const Crystal supercell = make_supercell(unit, {6, 1, 1});
    SetupOptions options;
    options.uses_symmetry = uses_symmetry;
    options.finds_primitive_cell = are_isotopes;
    const Setup setup = make_setup(unit, supercell, options);
    REQUIRE(setup.primitive.masses == unit.masses);
    size_t along_chain = 0;  // spglib may name the vectors of the cell in another order
    for (size_t k = 0; k < 3; ++k)
        if (std::abs(setup.primitive.lattice[k][0]) > 1) along_chain = k;
    if (are_isotopes && has_spglib())  // forces do not know masses: one atom is enough
        for (size_t atom = 0; atom < supercell.atom_count(); ++atom) CHECK(setup.group.representative(atom) == 0);
    std::vector<DisplacedForces> displaced;
    for (const Displacement& displacement : displacements_for(setup.group, 0.01))
        displaced.push_back({displacement, spring_forces(supercell, displacement, stiffness)});
    const ForceConstants constants = force_constants_from(setup.group, setup.map, displaced);
    CHECK(constants.acoustic_violation < 1e-12);
    const DynamicalMatrix matrix(setup.primitive, supercell, setup.map, constants);
    const double unit_of_frequency = 1000 * std::sqrt(kAccelerationUnit) / (2 * std::numbers::pi);
    for (const double q : {0.0, 1.0 / 6, 0.25, 1.0 / 3, 0.5}) {
        const double sum = stiffness * (1 / light + 1 / heavy), sine = std::sin(std::numbers::pi * q),
                     root = std::sqrt(sum * sum - 4 * stiffness * stiffness * sine * sine / (light * heavy));
        std::vector<double> expected = {0, 0, 0, 0, std::sqrt(std::abs(sum - root)), std::sqrt(sum + root)};
        for (double& value : expected) value *= unit_of_frequency;
        Vec3 wave_vector{};
        wave_vector[along_chain] = q;
        std::vector<double> found = matrix.frequencies(wave_vector);
        for (double& value : found) value = std::abs(value);
        std::sort(found.begin(), found.end());
        for (size_t k = 0; k < 6; ++k) CHECK_MESSAGE(std::abs(found[k] - expected[k]) <= 1e-5, q << " " << k);
    }
}

TEST_CASE("a supercell is in phonopy's order, and its atoms are found again") {
    const Crystal unit = chain(2.5, 1, 2), supercell = make_supercell(unit, {2, 3, 1});
    REQUIRE(supercell.atom_count() == 12);
    CHECK(supercell.position(1)[0] == doctest::Approx(5));  // along the first vector first
    CHECK(supercell.position(2)[1] == doctest::Approx(20));
    CHECK(supercell.atomic_numbers[6] == 17);
    const CellMap map(unit, supercell, 1e-4);
    CHECK(map.cell_count() == 6);
    for (size_t atom = 0; atom < 12; ++atom) {
        CHECK(map.atom_at(map.primitive_atom(atom), map.cell(atom)) == atom);
        Integer3 far = map.cell(atom);
        far[0] += 2 * 5, far[1] -= 3 * 7, far[2] += 11;
        CHECK(map.atom_at(map.primitive_atom(atom), far) == atom);
    }
    CHECK(map.is_kept_by({{{-1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}));
    CHECK_FALSE(map.is_kept_by({{{0, 1, 0}, {1, 0, 0}, {0, 0, 1}}}));
    Crystal moved = supercell;
    moved.positions[3] += 0.3;
    CHECK(says(phonon_error([&] { CellMap(unit, moved, 1e-4); }), "atom 1 of the supercell is no image"));
    moved = supercell;
    moved.lattice[1][1] *= 1.1;
    CHECK(says(phonon_error([&] { CellMap(unit, moved, 1e-4); }), "lattice vector 2"));
    moved = supercell;
    moved.positions[0] = moved.positions[3], moved.positions[1] = moved.positions[4];
    CHECK(says(phonon_error([&] { CellMap(unit, moved, 1e-4); }), "at the place of another"));
    moved = supercell;
    moved.masses[3] = 1 + 1e-6;  // as a file may have rounded it
    CHECK(phonon_error([&] { CellMap(unit, moved, 1e-4); }) == "no error");
    moved.masses[3] = 1.01;
    CHECK(says(phonon_error([&] { CellMap(unit, moved, 1e-4); }), "atom 3 of the supercell has 1.01 u"));
    CHECK(says(phonon_error([&] { cell_of_lattice(moved, unit.lattice, 1e-4); }), "atom 3 of the cell"));
    CHECK(cell_of_lattice(supercell, unit.lattice, 1e-4).masses == unit.masses);
    CHECK(says(phonon_error([&] { make_supercell(unit, {1000, 1000, 1}); }), "too large"));
    CHECK(says(phonon_error([&] { make_supercell(unit, {INT64_MAX, 2, 3}); }), "too large"));
    CHECK(says(phonon_error([&] { make_supercell(unit, {1, 0, 1}); }), "expected 1 or more"));
}

TEST_CASE("weights of a mesh add up, and symmetry changes no sum") {
    const FractionalOperation turn = {{{{0, -1, 0}, {1, 0, 0}, {0, 0, 1}}}, {}},
                              mirror = {{{{1, 0, 0}, {0, -1, 0}, {0, 0, 1}}}, {}};
    std::vector<FractionalOperation> group = only_identity();
    for (int k = 0; k < 3; ++k) {
        FractionalOperation next = group.back();
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) {
                next.rotation[i][j] = 0;
                for (size_t m = 0; m < 3; ++m) next.rotation[i][j] += turn.rotation[i][m] * group.back().rotation[m][j];
            }
        group.push_back(next);
    }
    const auto function = [](const Vec3& q) {  // has that symmetry
        const auto wave = [](double x) { return std::cos(2 * std::numbers::pi * x); };
        return std::exp(wave(q[0]) + wave(q[1])) + wave(q[0]) * wave(q[1]) * wave(q[2]);
    };
    const auto mean = [&](const std::vector<MeshPoint>& points) {
        double sum = 0, weight = 0;
        for (const MeshPoint& point : points) sum += point.weight * function(point.wave_vector), weight += point.weight;
        CHECK(std::abs(weight - 1) < 1e-12);
        return sum;
    };
    const auto all = mesh_points({6, 6, 3}, {}), fewer = mesh_points({6, 6, 3}, group);
    CHECK(all.size() == (6 * 6 * 3 + 4) / 2);  // q and -q; four are their own opposite
    CHECK(fewer.size() < all.size() / 2);
    CHECK(std::abs(mean(all) - mean(fewer)) < 1e-12);
    // A mesh that the rotation does not keep: only the mirror helps.
    group.push_back(mirror);
    CHECK(mesh_points({6, 4, 3}, group).size() > mesh_points({6, 6, 3}, group).size() / 2);
    CHECK(std::abs(mean(mesh_points({6, 4, 3}, {})) - mean(mesh_points({6, 4, 3}, group))) < 1e-12);
    CHECK(says(phonon_error([] { mesh_points({1000, 1000, 1000}, {}); }), "too fine"));
}

TEST_CASE("heat of one mode is that of a harmonic oscillator") {
    MeshModes modes{{{{0, 0, 0}, 1.0}}, {{-3.0, 5e-4, 8.0}}};  // imaginary, zero, and one that counts
    const double quantum = 4.135667696923859e-3 * 8, kT = kBoltzmann * 300, x = quantum / kT;
    const ThermalPoint point = thermal_point(modes, 300);
    CHECK(std::abs(point.free_energy - (quantum / 2 + kT * std::log(1 - std::exp(-x)))) < 1e-14);
    CHECK(std::abs(point.heat_capacity - kBoltzmann * x * x * std::exp(x) / std::pow(std::exp(x) - 1, 2)) < 1e-16);
    const double energy = quantum / 2 + quantum / (std::exp(x) - 1);
    CHECK(std::abs(point.entropy - (energy - point.free_energy) / 300) < 1e-16);
    CHECK(std::abs(zero_point_energy(modes) - quantum / 2) < 1e-15);
    const ThermalPoint cold = thermal_point(modes, 0.01);
    CHECK(cold.entropy == 0);
    CHECK(cold.heat_capacity == 0);
    CHECK(std::abs(thermal_point(modes, 1e6).heat_capacity / kBoltzmann - 1) < 1e-6);
    CHECK(imaginary_count(modes.frequencies) == 1);
    const StateDensity density = state_density(modes);
    double integral = 0;
    for (size_t k = 1; k < density.states.size(); ++k)
        integral +=
            (density.frequencies[k] - density.frequencies[k - 1]) * (density.states[k] + density.states[k - 1]) / 2;
    CHECK(std::abs(integral - 3) < 1e-5);
}

TEST_CASE("paths have the labels of their lattice") {
    SpaceGroup group;
    group.conventional_lattice = {{{4, 0, 0}, {0, 4, 0}, {0, 0, 6}}};
    const auto lattice = [&](int number, const char* symbol) {
        group.number = number, group.symbol = symbol;
        return standard_path(group).lattice;
    };
    CHECK(lattice(227, "Fd-3m") == "cF");
    CHECK(lattice(229, "Im-3m") == "cI");
    CHECK(lattice(221, "Pm-3m") == "cP");
    CHECK(lattice(194, "P6_3/mmc") == "hP");
    CHECK(lattice(166, "R-3m") == "hR");
    CHECK(lattice(139, "I4/mmm") == "tI");
    CHECK(lattice(136, "P4_2/mnm") == "tP");
    CHECK(lattice(62, "Pnma") == "oP");
    CHECK(lattice(15, "C2/c") == "");  // not in the table
    CHECK(standard_path({}).lattice == "");
    for (const double height : {3.0, 6.0})  // both forms of tI and hR
        for (const auto& [number, symbol] : {std::pair(139, "I4/mmm"), std::pair(166, "R-3m")}) {
            group.number = number, group.symbol = symbol, group.conventional_lattice[2][2] = height;
            CHECK(standard_path(group).path.size() >= 2);
        }
    // X of the primitive cell of a face-centred cubic lattice is (0 1 0) of the cubic cell.
    const Mat3 cubic = {{{4, 0, 0}, {0, 4, 0}, {0, 0, 4}}}, primitive = {{{0, 2, 2}, {2, 0, 2}, {2, 2, 0}}};
    StandardPath path;
    path.points = {{"X", {0.5, 0, 0.5}}};
    const Vec3 x = in_cell(path, primitive, cubic).points[0].wave_vector;
    CHECK(std::abs(x[0]) + std::abs(x[1] - 1) + std::abs(x[2]) < 1e-12);

    const BandPath parsed = parse_path(" X  A=-1/4,0.5,1e-1| A=0,0,0 X ", path.points);
    REQUIRE(parsed.size() == 2);
    CHECK(parsed[0][1].wave_vector == Vec3{-0.25, 0.5, 0.1});
    const std::vector<BandPoint> points = sampled_path(parsed, cubic, 3);
    REQUIRE(points.size() == 6);
    CHECK(points[3].begins_piece);
    CHECK(points[3].distance == points[2].distance);
    CHECK(points[4].label.empty());
    for (const char* bad :
         {"X Y", "X", "", "X X|", "A=1,2 X", "A=1,2,3,4 X", "A=1/0,0,0 X", "=0,0,0 X", "A=nan,0,0 X", "A=,, X"})
        CHECK_MESSAGE(says(phonon_error([&] { parse_path(bad, path.points); }), "the path has"), bad);
}

TEST_CASE("YAML as programs write it is read, and everything else is refused") {
    const JsonValue root = parse_yaml(
        "# a comment\nphonopy:\n  version: \"4 # no comment\"\n  empty:\nlist:\n- [ 1, -2.5, x ] # c\n- a: 1\n  b: "
        "[[1,2],[]]\n-\n  - 3\nlast: 'q: r'\n",
        "here");
    CHECK(root["phonopy"]["version"].text() == "4 # no comment");
    CHECK(root["phonopy"]["empty"].is_null());
    REQUIRE(root["list"].size() == 3);
    CHECK(root["list"][0][1].number() == -2.5);
    CHECK(root["list"][0][2].text() == "x");
    CHECK(root["list"][1]["b"][0][1].integer() == 2);
    CHECK(root["list"][2][0].integer() == 3);
    CHECK(root["last"].text() == "q: r");
    for (const char* bad : {"", "a: 1\na: 2\n", "a: [1\n", "a: [1 2]]\n", "a: &x 1\n", "a: |\n  text\n", "a: {b: 1}\n",
                            "a: 1\n  b: 2\n", "  a: 1\nb: 2\n", "a: 1\nb\n", "a: [1,,2]\n"})
        CHECK_MESSAGE(says(phonon_error([&] { parse_yaml(bad, "here"); }), "here: "), bad);
    std::string deep;
    for (int k = 0; k < 60; ++k) deep += std::string(static_cast<size_t>(k), ' ') + "a:\n";
    CHECK(says(phonon_error([&] { parse_yaml(deep, "here"); }), "nested too deeply"));
    deep = "a: " + std::string(1'000'000, '[');
    CHECK(says(phonon_error([&] { parse_yaml(deep, "here"); }), "nested too deeply"));
}

TEST_CASE("phonopy's files read back as they were written") {
    PhonopyTask task;
    task.unit_cell = chain(2.5, 22.99, 35.45);
    task.supercell = make_supercell(task.unit_cell, {3, 1, 1});
    task.supercell_matrix = {{{3, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    task.primitive_lattice = Mat3{{{5, 0, 0}, {5, 20, 0}, {0, 0, 20}}};
    task.tolerance = 1e-4;
    task.displacements = {{4, {0.01, -0.002, 0.3}}, {0, {0, 0, 1e-9}}};
    const PhonopyTask back = parse_phonopy_task(phonopy_task_text(task), "here");
    CHECK(back.unit_cell.atomic_numbers == task.unit_cell.atomic_numbers);
    CHECK_ALL_CLOSE(back.supercell.positions, task.supercell.positions, 1e-12);
    CHECK_ALL_CLOSE(back.supercell.masses, task.supercell.masses, 1e-9);
    CHECK(back.supercell_matrix == task.supercell_matrix);
    REQUIRE(back.primitive_lattice);
    for (size_t k = 0; k < 9; ++k)
        CHECK(std::abs((*back.primitive_lattice)[k / 3][k % 3] - (*task.primitive_lattice)[k / 3][k % 3]) < 1e-12);
    CHECK(back.tolerance == 1e-4);
    REQUIRE(back.displacements.size() == 2);
    CHECK(back.displacements[0].atom == 4);
    CHECK(back.displacements[0].vector == task.displacements[0].vector);

    std::vector<DisplacedForces> displaced = {{task.displacements[0], std::vector<double>(18)},
                                              {task.displacements[1], std::vector<double>(18)}};
    for (size_t k = 0; k < 18; ++k)
        displaced[0].forces[k] = std::sin(static_cast<double>(k)),
        displaced[1].forces[k] = -1e-7 * static_cast<double>(k);
    const std::vector<DisplacedForces> read = parse_force_sets(force_sets_text(displaced, 6), 6, "here");
    REQUIRE(read.size() == 2);
    for (size_t k = 0; k < 2; ++k) {
        CHECK(read[k].displacement.atom == displaced[k].displacement.atom);
        CHECK_ALL_CLOSE(read[k].forces, displaced[k].forces, 1e-13);
    }
}

TEST_CASE("displacements of any equal atom determine second derivatives") {
    // Two atoms that a mirror exchanges, with a spring; the second one is displaced instead of the first.
    SymmetryOperation identity{kIdentity, {0, 1}}, mirror{{{{-1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, {1, 0}};
    const SymmetryGroup group(2, {identity, mirror});
    std::vector<DisplacedForces> displaced;
    for (size_t k = 0; k < 3; ++k) {
        DisplacedForces entry{{1, {}}, std::vector<double>(6)};
        entry.displacement.vector[k] = 0.1;
        const double stiffness = static_cast<double>(k + 1);
        entry.forces[3 + k] = -0.1 * stiffness;
        entry.forces[k] = 0.1 * stiffness;
        displaced.push_back(entry);
    }
    const std::vector<Displacement> all = {displaced[0].displacement, displaced[1].displacement,
                                           displaced[2].displacement};
    CHECK_FALSE(undetermined_atom(group, all));
    CHECK(undetermined_atom(group, std::span(all).first(2)) == 0);
    CHECK(undetermined_atom(SymmetryGroup(2, {}), all) == 0);  // the other one is displaced
    const std::vector<double> found = force_derivatives(group, displaced, std::vector<int32_t>{0, 1});
    for (size_t row = 0; row < 2; ++row)
        for (size_t j = 0; j < 2; ++j)
            for (size_t k = 0; k < 9; ++k) {
                const double stiffness = k % 4 == 0 ? static_cast<double>(k / 4 + 1) : 0;
                CHECK(std::abs(found[(2 * row + j) * 9 + k] - (row == j ? -stiffness : stiffness)) < 1e-12);
            }
}
