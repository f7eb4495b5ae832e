// SPDX-License-Identifier: MIT
// Second derivatives beside formulas, automatic differentiation and themselves without symmetry; what follows from them
// beside published numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <numbers>
#include <numeric>
#include <random>

#include <nlohmann/json.hpp>

#include "analytic/model.h"
#include "close.h"
#include "core/elements.h"
#include "core/error.h"
#include "derivatives/hessian.h"
#include "properties/normal_modes.h"
#include "properties/thermochemistry.h"
#include "properties/units.h"
#include "symmetry/point_group.h"

using namespace mlff;

namespace {

struct Molecule {
    std::vector<int32_t> numbers;
    std::vector<double> positions;
    Mat3 cell{};
    std::array<bool, 3> periodic{};

    SystemView view() const {
        SystemView view;
        view.atom_count = static_cast<int64_t>(numbers.size());
        view.atomic_numbers = numbers.data();
        view.positions = positions.data();
        view.cell = cell;
        view.periodic = periodic;
        return view;
    }
    std::vector<double> masses() const {
        std::vector<double> result;
        for (const int32_t number : numbers) result.push_back(atomic_mass(number));
        return result;
    }
};

Session session_of(std::shared_ptr<const Model> model, Precision precision = Precision::fp64) {
    SessionOptions options;
    options.device = "cpu";
    options.precision = precision;
    options.exact_radial = true;
    return Session(std::move(model), options);
}

const Molecule kWater = {{8, 1, 1}, {0, 0, 0.119, 0, 0.763, -0.477, 0, -0.763, -0.477}};
const Molecule kMethane = {{6, 1, 1, 1, 1},
                           {0, 0, 0, 0.63, 0.63, 0.63, -0.63, -0.63, 0.63, -0.63, 0.63, -0.63, 0.63, -0.63, -0.63}};

Molecule benzene() {
    Molecule ring;
    for (const auto& [number, radius] : {std::pair{6, 1.397}, {1, 2.481}})
        for (int k = 0; k < 6; ++k) {
            const double angle = std::numbers::pi / 3 * k;
            ring.numbers.push_back(number);
            for (const double x : {radius * std::cos(angle), radius * std::sin(angle), 0.0})
                ring.positions.push_back(x);
        }
    return ring;
}

// Turned and moved, so that nothing lies along an axis.
Molecule somewhere(Molecule molecule) {
    const double a = 0.7, b = 1.1;
    const Mat3 about_z = {{{std::cos(a), -std::sin(a), 0}, {std::sin(a), std::cos(a), 0}, {0, 0, 1}}},
               about_x = {{{1, 0, 0}, {0, std::cos(b), -std::sin(b)}, {0, std::sin(b), std::cos(b)}}};
    transform_vectors(product(about_z, about_x), molecule.positions.data(), molecule.numbers.size());
    for (size_t i = 0; i < molecule.positions.size(); ++i)
        molecule.positions[i] += 0.3 * static_cast<double>(i % 3) - 2;
    return molecule;
}

double largest(const std::vector<double>& values) {
    double result = 0;
    for (const double value : values) result = std::max(result, std::abs(value));
    return result;
}

}  // namespace

TEST_CASE("point groups of molecules") {
    const auto expect = [](const Molecule& molecule, size_t operations, int symmetry_number, bool is_linear) {
        const Molecule moved = somewhere(molecule);
        const PointGroup group = find_point_group(moved.view(), 1e-6);
        CHECK_EQ(group.operations.size(), operations);
        CHECK_EQ(group.symmetry_number, symmetry_number);
        CHECK_EQ(group.is_linear, is_linear);
    };
    expect(kWater, 4, 2, false);
    expect(kMethane, 24, 12, false);
    expect(benzene(), 24, 12, false);
    expect({{8, 6, 8}, {-1.16, 0, 0, 0, 0, 0, 1.16, 0, 0}}, 16, 2, true);
    expect({{1, 6, 7}, {-1.07, 0, 0, 0, 0, 0, 1.15, 0, 0}}, 8, 1, true);
    expect({{7, 7}, {-0.55, 0, 0, 0.55, 0, 0}}, 16, 2, true);
    expect({{18}, {0, 0, 0}}, 1, 1, false);
    // CHFClBr: four different neighbours.
    Molecule chiral = kMethane;
    chiral.numbers = {6, 1, 9, 17, 35};
    expect(chiral, 1, 1, false);
    // An atom that is 0.009 A away from its place breaks the symmetry, unless that is tolerated.
    Molecule shaken = kMethane;
    shaken.positions[3] += 0.004, shaken.positions[4] += 0.008;
    expect(shaken, 1, 1, false);
    CHECK_EQ(find_point_group(shaken.view(), 0.05).symmetry_number, 12);
}

TEST_CASE("isotopes are different atoms of a rotor") {
    const std::vector<double> same = {15.999, 1.008, 1.008}, different = {15.999, 1.008, 2.014};
    CHECK_EQ(find_point_group(kWater.view(), 1e-6, same).symmetry_number, 2);
    CHECK_EQ(find_point_group(kWater.view(), 1e-6, different).symmetry_number, 1);
}

TEST_CASE("how a structure turns without any force") {
    Molecule system = kWater;
    CHECK_EQ(free_rotation_axes(system.view(), false).size(), 3);
    system.cell = {{{0, 5, 0}, {0, 0, 5}, {5, 0, 0}}};
    system.periodic = {false, true, false};
    CHECK(free_rotation_axes(system.view(), false) == std::vector<Vec3>{{0, 0, 1}});
    system.periodic = {true, true, false};
    CHECK(free_rotation_axes(system.view(), false).empty());
    const Molecule line = somewhere({{8, 6, 8}, {-1.16, 0, 0, 0, 0, 0, 1.16, 0, 0}});
    const auto axes = free_rotation_axes(line.view(), true);
    REQUIRE_EQ(axes.size(), 2);
    const Vec3 along = {line.positions[6] - line.positions[0], line.positions[7] - line.positions[1],
                        line.positions[8] - line.positions[2]};
    for (const Vec3& axis : axes) CHECK(std::abs(dot(axis, along)) < 1e-12);
    CHECK(std::abs(dot(axes[0], axes[1])) < 1e-12);
}

TEST_CASE("a model that tells mirror images apart has the symmetry of rotations only") {
    const Molecule molecule = somewhere(kWater);
    const auto model = load_model(MLFF_NEQUIP_GOLDEN_DIR "/p12_v093_names_of_22may_f32.pth");
    REQUIRE(!model->summary().is_mirror_symmetric);
    Session session = session_of(model);
    HessianOptions none;
    none.symmetry_tolerance = 0;
    const Hessian all = compute_hessian(session, molecule.view(), none),
                  few = compute_hessian(session, molecule.view());
    CHECK_EQ(few.operation_count, 2);
    CHECK_ALL_CLOSE(few.values, all.values, 5e-5 * largest(all.values));
}

TEST_CASE("the Hessian of a pair is that of its formula") {
    // Morse: V(r) = (1 - exp(-a (r - r0)))^2 - 1 below 3 angstrom, a = 1.8 / angstrom.
    const double r = 2.2, r0 = 2 * covalent_radius(18), a = 1.8, decay = std::exp(-a * (r - r0));
    const double slope = 2 * a * decay * (1 - decay), curvature = 2 * a * a * decay * (2 * decay - 1);
    const Molecule pair = {{18, 18}, {0, 0, 0, r, 0, 0}};
    std::vector<double> expected(36);
    for (size_t k = 0; k < 3; ++k)
        for (size_t i = 0; i < 2; ++i)
            for (size_t j = 0; j < 2; ++j)
                expected[(3 * i + k) * 6 + 3 * j + k] = (i == j ? 1 : -1) * (k == 0 ? curvature : slope / r);
    Session session = session_of(make_analytic_model());
    for (const double tolerance : {0.0, 1e-6}) {
        HessianOptions options;
        options.symmetry_tolerance = tolerance;
        const Hessian found = compute_hessian(session, pair.view(), options);
        CHECK_ALL_CLOSE(found.values, expected, 1e-6 * largest(expected));
        CHECK(found.sum_rule_error < 1e-9);
        CHECK(found.step_error < 1e-5 * largest(expected));
        CHECK_EQ(found.operation_count, tolerance > 0 ? 16 : 1);
    }
    HessianOptions far;  // so far that the error of the step shows
    far.step = 0.02;
    const Hessian extrapolated = compute_hessian(session, pair.view(), far);
    CHECK(extrapolated.is_extrapolated);
    CHECK(extrapolated.step_error > 1e-4 * largest(expected));
    CHECK_ALL_CLOSE(extrapolated.values, expected, 1e-5 * largest(expected));
}

TEST_CASE("symmetry changes how much is computed, not what") {
    Session session = session_of(make_analytic_model());
    for (const Molecule& molecule : {somewhere(kWater), somewhere(kMethane), somewhere(benzene()),
                                     somewhere({{8, 6, 8}, {-1.16, 0, 0, 0, 0, 0, 1.16, 0, 0}})}) {
        HessianOptions none;
        none.symmetry_tolerance = 0;
        const Hessian all = compute_hessian(session, molecule.view(), none),
                      few = compute_hessian(session, molecule.view());
        CHECK_ALL_CLOSE(few.values, all.values, 3e-6 * largest(all.values));
        CHECK(few.evaluation_count < all.evaluation_count);
        CHECK(few.operation_count > 1);
    }
}

TEST_CASE("the Hessian of a MACE model is that of automatic differentiation") {
    std::ifstream file(MLFF_HESSIAN_GOLDEN_DIR "/p03_mace_plain_l1.json");
    const auto golden = nlohmann::json::parse(file);
    Molecule molecule;
    molecule.numbers = golden["numbers"].get<std::vector<int32_t>>();
    for (const auto& position : golden["positions"])
        for (const double x : position) molecule.positions.push_back(x);
    const auto expected = golden["hessian"].get<std::vector<double>>();
    REQUIRE_EQ(expected.size(), 9 * molecule.numbers.size() * molecule.numbers.size());
    const auto model = load_model(MLFF_GOLDEN_DIR "/" + golden["model_file"].get<std::string>());
    for (const bool is_exact : {true, false}) {
        SessionOptions options;
        options.device = "cpu";
        options.precision = Precision::fp64;
        options.exact_radial = is_exact;
        Session session(model, options);
        const Hessian found = compute_hessian(session, molecule.view());
        CHECK_ALL_CLOSE(found.values, expected, 1e-5 * largest(expected));
        CHECK(found.asymmetry < 1e-5 * largest(expected));
    }
}

TEST_CASE("the Hessian of a crystal adds up to nothing") {
    Molecule crystal = {{18, 18, 36}, {0, 0, 0, 1.9, 1.8, 0.1, 0.2, 1.7, 1.9}};
    crystal.cell = {{{3.9, 0, 0}, {0.2, 3.8, 0}, {0, 0.1, 4.1}}};
    crystal.periodic = {true, true, true};
    Session session = session_of(make_analytic_model());
    const Hessian found = compute_hessian(session, crystal.view());
    CHECK(found.sum_rule_error < 1e-7);
    CHECK(found.asymmetry < 1e-5 * largest(found.values));
    CHECK_EQ(found.operation_count, 1);
}

TEST_CASE("a Hessian is refused where it would be wrong") {
    const auto message = [](Session& session, const HessianOptions& options) {
        try {
            compute_hessian(session, kWater.view(), options);
        } catch (const Error& error) {
            CHECK(error.status() == Status::argument);
            return std::string(error.what());
        }
        return std::string();
    };
    Session mixed = session_of(load_model("builtin"), Precision::mixed), good = session_of(make_analytic_model());
    CHECK(message(mixed, {}).find("fp64") != std::string::npos);
    for (const double step : {0.0, -1e-3, 1.0, std::nan("")})
        CHECK(message(good, {.step = step}).find("step") != std::string::npos);
    for (const double tolerance : {-1e-3, 1.0, std::nan("")})
        CHECK(message(good, {.symmetry_tolerance = tolerance}).find("tolerance") != std::string::npos);
    // Progress can stop it.
    CHECK_THROWS_AS(compute_hessian(good, kWater.view(), {}, [](double) { return false; }), Error);
}

TEST_CASE("normal modes of springs on a line are known") {
    // O=C=O with springs k: symmetric sqrt(k / m), antisymmetric sqrt(k (M + 2 m) / (m M)); bending costs nothing.
    const double k = 90, m = 16, M = 12;
    std::vector<double> hessian(81);
    const auto spring = [&](size_t i, size_t j) {
        hessian[3 * i * 9 + 3 * i] += k, hessian[3 * j * 9 + 3 * j] += k;
        hessian[3 * i * 9 + 3 * j] -= k, hessian[3 * j * 9 + 3 * i] -= k;
    };
    spring(0, 1), spring(1, 2);
    const std::vector<double> masses = {m, M, m}, positions = {-1.2, 0, 0, 0, 0, 0, 1.2, 0, 0};
    const std::vector<Vec3> axes = {{0, 1, 0}, {0, 0, 1}};
    const NormalModes modes = normal_modes(hessian, masses, positions, axes);
    constexpr double kWavenumber = 521.47083;  // of sqrt(eV / (angstrom^2 u)), in 1/cm
    const std::vector<double> expected = {0, 0, kWavenumber * std::sqrt(k / m),
                                          kWavenumber * std::sqrt(k * (M + 2 * m) / (m * M))};
    CHECK_ALL_CLOSE(modes.frequencies, expected, 2e-3);  // the root of rounding, for the zeros
    CHECK_EQ(modes.rigid_frequencies.size(), 5);
    CHECK(largest(modes.rigid_frequencies) < 2e-3);
    CHECK(test::is_close(modes.reduced_masses[2], m, 1e-9));
    const std::vector<double> symmetric(modes.displacements.begin() + 18, modes.displacements.begin() + 27);
    const double half = std::copysign(std::sqrt(0.5), symmetric[0]);
    CHECK_ALL_CLOSE(symmetric, (std::vector<double>{half, 0, 0, 0, 0, 0, -half, 0, 0}), 1e-9);
    const double quantum = 1.239841984e-4;  // eV for 1/cm
    CHECK(test::is_close(modes.zero_point_energy(), quantum / 2 * (expected[2] + expected[3]), 1e-6));

    // The top of a hill is imaginary.
    for (double& number : hessian) number = -number;
    CHECK(normal_modes(hessian, masses, positions, axes).imaginary_count() >= 2);
}

TEST_CASE("normal modes do not depend on where a molecule is") {
    Session session = session_of(make_analytic_model());
    std::vector<double> before;
    for (const Molecule& molecule : {kWater, somewhere(kWater)}) {
        const Hessian hessian = compute_hessian(session, molecule.view());
        const NormalModes modes = normal_modes(hessian.values, molecule.masses(), molecule.positions,
                                               free_rotation_axes(molecule.view(), false));
        CHECK_EQ(modes.frequencies.size(), 3);
        if (!before.empty()) CHECK_ALL_CLOSE(modes.frequencies, before, 0.02);
        before = modes.frequencies;
    }
}

TEST_CASE("entropies of gases are those of tables") {
    // Standard entropies at 298.15 K and 1 bar, J/(mol K), from published frequencies and structures.
    struct Gas {
        Molecule molecule;
        std::vector<double> frequencies;
        double spin, entropy, heat_capacity;
    };
    const std::vector<Gas> gases = {
        {{{2}, {0, 0, 0}}, {}, 1, 126.15, 20.79},
        {{{7, 7}, {0, 0, 0, 1.098, 0, 0}}, {2359}, 1, 191.61, 29.12},
        {{{8, 8}, {0, 0, 0, 1.208, 0, 0}}, {1580}, 3, 205.15, 29.38},
        {{{8, 1, 1}, {0, 0, 0, 0.7572, 0.5865, 0, -0.7572, 0.5865, 0}}, {3657, 1595, 3756}, 1, 188.84, 33.59},
        {{{8, 6, 8}, {-1.162, 0, 0, 0, 0, 0, 1.162, 0, 0}}, {667.4, 667.4, 1333, 2349}, 1, 213.79, 37.13}};
    for (const Gas& gas : gases) {
        const PointGroup group = find_point_group(gas.molecule.view(), 1e-3);
        const std::vector<double> masses = gas.molecule.masses();
        const Thermochemistry found = thermochemistry_of({.frequencies = gas.frequencies,
                                                          .masses = masses,
                                                          .positions = gas.molecule.positions,
                                                          .is_linear = group.is_linear,
                                                          .symmetry_number = group.symmetry_number,
                                                          .spin_multiplicity = gas.spin},
                                                         298.15, 1);
        CHECK(test::is_close(found.entropy * kKilojoulePerMole * 1e3, gas.entropy, 0.3));
        CHECK(test::is_close(found.heat_capacity * kKilojoulePerMole * 1e3, gas.heat_capacity, 0.15));
        CHECK(test::is_close(found.gibbs_energy, found.enthalpy - 298.15 * found.entropy, 1e-12));
    }
    // Cold vibrations rest in their ground state; hot ones have k T each.
    const std::vector<double> one = {1000};
    const VibrationalEnergy cold = vibrational_energy(one, 1), hot = vibrational_energy(one, 1e6);
    CHECK(test::is_close(cold.internal_energy, cold.zero_point_energy, 1e-15));
    CHECK(cold.entropy == 0);
    CHECK(test::is_close(hot.internal_energy, 8.617333262e-5 * 1e6, 1e-3));
    CHECK(test::is_close(hot.heat_capacity, 8.617333262e-5, 1e-9));
}
