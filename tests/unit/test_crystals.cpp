// SPDX-License-Identifier: MIT
// Equations of state and elastic constants agree with each other, with differences of energies and with known answers.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "analytic/model.h"
#include "close.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/units.h"
#include "properties/elastic.h"
#include "properties/equation_of_state.h"
#include "properties/strained_crystal.h"
#include "test_dynamics_support.h"

using namespace mlff;
using namespace mlff::test;

namespace {

Session session_with(int thread_count) {
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = thread_count;
    return Session(make_analytic_model(), options);
}

// Of copper, whose distances are far from those where the third derivative of the analytic model jumps.
Particles crystal_of(const Mat3& cell, std::vector<double> positions) {
    Particles crystal = argon_atoms(std::move(positions), 1);
    crystal.atomic_numbers.assign(crystal.atom_count(), 29);
    crystal.environment.cell = cell;
    return crystal;
}

// Neighbours are `distance` apart.
Particles face_centred_cubic(double distance) {
    const double half = distance / std::sqrt(2.0);
    return crystal_of({{{0, half, half}, {half, 0, half}, {half, half, 0}}}, {0.3, 0.1, 0});
}

// With an axis longer than that of close packing by the factor `stretch`. Strains move its two atoms apart.
Particles hexagonal(double a, double stretch) {
    const double c = std::sqrt(8.0 / 3) * a * stretch, h = std::sqrt(3.0) / 2 * a;
    return crystal_of({{{a, 0, 0}, {-a / 2, h, 0}, {0, 0, c}}}, {0, 0, 0, 0, 2 * h / 3, c / 2});
}

Particles simple_cubic(double a) { return crystal_of({{{a, 0, 0}, {0, a, 0}, {0, 0, a}}}, {0, 0, 0}); }

Status status_of(const std::function<void()>& work, const std::string& words) {
    try {
        work();
    } catch (const Error& error) {
        CHECK_MESSAGE(std::string(error.what()).find(words) != std::string::npos, error.what());
        return error.status();
    }
    return Status::ok;
}

struct SampledCurve {
    std::vector<double> volumes, energies;
};

SampledCurve sampled(EnergyForm form, const EquationOfState& equation, double low, double high, int count = 9) {
    SampledCurve curve;
    for (int i = 0; i < count; ++i) {
        curve.volumes.push_back(equation.volume * (low + (high - low) * i / (count - 1)));
        curve.energies.push_back(energy_at(form, equation, curve.volumes.back()));
    }
    return curve;
}

// d^2 E / d strain_i d strain_j of the relaxed energy, divided by the volume: GPa.
double second_difference(Session& session, const Particles& crystal, size_t i, size_t j) {
    constexpr double kStep = 1e-3;
    constexpr size_t kPlaces[6][2] = {{0, 0}, {1, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}};
    RelaxationOptions tight;
    tight.largest_force = 1e-7;
    const auto energy_of = [&](double first, double second) {
        Mat3 matrix = kIdentity;
        for (const auto& [component, strain] : {std::pair{i, first}, std::pair{j, second}}) {
            matrix[kPlaces[component][0]][kPlaces[component][1]] += strain / 2;
            matrix[kPlaces[component][1]][kPlaces[component][0]] += strain / 2;
        }
        return relaxed(session, {deformed(crystal, matrix)}, tight).front().energy();
    };
    const double sum =
        energy_of(kStep, kStep) - energy_of(kStep, -kStep) - energy_of(-kStep, kStep) + energy_of(-kStep, -kStep);
    return sum / (4 * kStep * kStep * cell_volume(crystal) * kGigapascal);
}

constexpr EnergyForm kForms[] = {EnergyForm::birch_murnaghan, EnergyForm::vinet};

}  // namespace

TEST_CASE("the parameters of an equation of state are what their names say") {
    const EquationOfState equation{-43.2, 160.3, 0.58, 4.3};
    for (const EnergyForm form : kForms) {
        const auto energy = [&](double change) { return energy_at(form, equation, 160.3 * (1 + change)); };
        const double h = 1e-3;
        // Derivatives by V/V0: B0 V0 is the second, and B0' = -1 - third / second.
        const double second = (energy(h) - 2 * energy(0) + energy(-h)) / (h * h),
                     third = (energy(2 * h) - 2 * energy(h) + 2 * energy(-h) - energy(-2 * h)) / (2 * h * h * h);
        CHECK(is_close(energy(0), -43.2, 1e-12));
        CHECK(is_close((energy(h) - energy(-h)) / (2 * h), 0, 2e-3));
        CHECK(is_close(second / 160.3, 0.58, 1e-5));
        CHECK(is_close(-1 - third / second, 4.3, 1e-3));
    }
}

TEST_CASE("a fit recovers the parameters of a synthetic curve") {
    for (const EnergyForm form : kForms)
        for (const EquationOfState& equation :
             {EquationOfState{-43.2, 160.3, 0.58, 4.3}, EquationOfState{1e4, 11.2, 2.9, 1},
              EquationOfState{-3, 900, 0.01, 9}}) {
            const SampledCurve curve = sampled(form, equation, 0.93, 1.08);
            const FittedEquation fit = fit_equation(form, curve.volumes, curve.energies);
            const double scale = equation.bulk_modulus * equation.volume;
            CHECK(is_close(fit.equation.energy, equation.energy, 1e-8 * scale));
            CHECK(is_close(fit.equation.volume, equation.volume, 1e-7 * equation.volume));
            CHECK(is_close(fit.equation.bulk_modulus, equation.bulk_modulus, 1e-6 * equation.bulk_modulus));
            CHECK(is_close(fit.equation.bulk_modulus_slope, equation.bulk_modulus_slope, 1e-4));
            CHECK(is_close(fit.rms_residual, 0, 1e-11 * (scale + std::abs(equation.energy))));
        }
}

TEST_CASE("a fit with residuals is the best one") {
    SampledCurve curve = sampled(EnergyForm::vinet, {-5, 20, 0.5, 5}, 0.92, 1.08, 7);
    for (size_t i = 0; i < 7; ++i) curve.energies[i] += i % 2 == 0 ? 1e-3 : -1e-3;
    const FittedEquation fit = fit_equation(EnergyForm::vinet, curve.volumes, curve.energies);
    const auto rms = [&](const EquationOfState& equation) {
        double sum = 0;
        for (size_t i = 0; i < 7; ++i)
            sum += std::pow(energy_at(EnergyForm::vinet, equation, curve.volumes[i]) - curve.energies[i], 2);
        return std::sqrt(sum / 7);
    };
    CHECK(is_close(fit.rms_residual, rms(fit.equation), 1e-12));
    CHECK(fit.rms_residual > 5e-4);
    const EquationOfState& e = fit.equation;
    for (const double step : {-1e-4, 1e-4}) {
        CHECK(rms({e.energy + step, e.volume, e.bulk_modulus, e.bulk_modulus_slope}) > fit.rms_residual);
        CHECK(rms({e.energy, e.volume + 30 * step, e.bulk_modulus, e.bulk_modulus_slope}) > fit.rms_residual);
        CHECK(rms({e.energy, e.volume, e.bulk_modulus + 30 * step, e.bulk_modulus_slope}) > fit.rms_residual);
        CHECK(rms({e.energy, e.volume, e.bulk_modulus, e.bulk_modulus_slope + 1000 * step}) > fit.rms_residual);
    }
}

TEST_CASE("a fit refuses points that say nothing") {
    const EnergyForm form = EnergyForm::birch_murnaghan;
    const EquationOfState equation{-43.2, 160.3, 0.58, 4.3};
    const auto fit = [&](const SampledCurve& curve) { fit_equation(form, curve.volumes, curve.energies); };
    SampledCurve few = sampled(form, equation, 0.94, 1.06, 4);
    CHECK(status_of([&] { fit(few); }, "expected at least 5") == Status::argument);
    CHECK(status_of([&] { fit(sampled(form, equation, 1.02, 1.1)); }, "lowest at the smallest volume") ==
          Status::system);
    CHECK(status_of([&] { fit(sampled(form, equation, 0.9, 0.98)); }, "lowest at the largest volume") ==
          Status::system);
    for (const double bad : {std::nan(""), double{INFINITY}}) {
        SampledCurve curve = sampled(form, equation, 0.94, 1.06);
        curve.energies[3] = bad;
        CHECK(status_of([&] { fit(curve); }, "energy at volume 3") == Status::system);
        curve = sampled(form, equation, 0.94, 1.06);
        curve.volumes[3] = bad;
        CHECK(status_of([&] { fit(curve); }, "volume 3") == Status::system);
    }
    SampledCurve twice = sampled(form, equation, 0.94, 1.06);
    twice.volumes[4] = twice.volumes[3];
    CHECK(status_of([&] { fit(twice); }, "volume 4") == Status::system);
    SampledCurve kinked = sampled(form, equation, 0.94, 1.06);
    kinked.energies[7] += 0.1;
    CHECK(status_of([&] { fit(kinked); }, "not a convex function") == Status::system);
}

TEST_CASE("the bulk modulus of a cubic crystal is that of its elastic constants, which are differences of energies") {
    Session session = session_with(1);
    const ElasticConstants constants = compute_elastic_constants(session, face_centred_cubic(2.6), {});
    REQUIRE(constants.problem == "");
    REQUIRE(constants.is_stable);
    const VoigtMatrix& c = constants.stiffness;
    const double c11 = second_difference(session, constants.crystal, 0, 0),
                 c12 = second_difference(session, constants.crystal, 0, 1),
                 c44 = second_difference(session, constants.crystal, 3, 3);
    CHECK(c11 > 10);
    VoigtMatrix expected{};
    for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 3; ++j) {
            expected[i][j] = i == j ? c11 : c12;
            expected[i + 3][j + 3] = i == j ? c44 : 0;
        }
    for (size_t i = 0; i < 6; ++i) {
        CHECK_ALL_CLOSE(c[i], expected[i], 1e-4 * c11);
        for (size_t j = 0; j < 3; ++j)
            CHECK(is_close(c[i][j], c[i < 3 ? (i + 1) % 3 : i][i < 3 ? (j + 1) % 3 : j], 1e-6 * c11));
    }
    CHECK(constants.asymmetry <= 1e-5 * c11);
    CHECK(is_close(c[0][1], c[3][3], 1e-5 * c11));  // Cauchy's relation, for pair potentials
    const double bulk = (c[0][0] + 2 * c[0][1]) / 3;
    CHECK(is_close(constants.moduli->bulk.voigt, bulk, 1e-6 * bulk));
    CHECK(is_close(constants.moduli->bulk.reuss, bulk, 1e-6 * bulk));
    CHECK_ALL_CLOSE(constants.residual_stress, Voigt{}, 1e-3);

    for (const EnergyForm form : kForms) {
        EnergyCurveOptions options;
        options.range = 0.02;
        const EnergyCurve curve = compute_energy_curve(session, constants.crystal, form, options);
        REQUIRE(curve.problem == "");
        CHECK(is_close(curve.fit->equation.bulk_modulus / kGigapascal, bulk, 1e-3 * bulk));
        CHECK(is_close(curve.fit->equation.volume, cell_volume(constants.crystal),
                       1e-4 * cell_volume(constants.crystal)));
    }
}

TEST_CASE("constants of zero strain do not depend on the strains they come from, nor on the number of threads") {
    Session session = session_with(1), other = session_with(3);
    ElasticOptions options;
    const ElasticConstants small = compute_elastic_constants(session, hexagonal(2.6, 1.02), options);
    CHECK(compute_elastic_constants(other, hexagonal(2.6, 1.02), options).stiffness == small.stiffness);
    options.strain = 0.006;
    const ElasticConstants large = compute_elastic_constants(session, hexagonal(2.6, 1.02), options);
    CHECK(large.extrapolation_change > 5 * small.extrapolation_change);
    for (size_t i = 0; i < 6; ++i)
        CHECK_ALL_CLOSE(large.stiffness[i], small.stiffness[i], 0.05 * large.extrapolation_change);
}

TEST_CASE("positions relax at each strain and at each volume") {
    Session session = session_with(1);
    ElasticOptions options;
    const ElasticConstants constants = compute_elastic_constants(session, hexagonal(2.6, 1.02), options);
    REQUIRE(constants.problem == "");
    const VoigtMatrix& c = constants.stiffness;
    const double scale = c[0][0];
    for (const auto& [i, j] : {std::pair<size_t, size_t>{0, 0}, {0, 1}, {0, 2}, {2, 2}, {3, 3}})
        CHECK(is_close(c[i][j], second_difference(session, constants.crystal, i, j), 1e-4 * scale));
    CHECK(is_close(c[0][0], c[1][1], 1e-5 * scale));
    CHECK(is_close(c[0][2], c[1][2], 1e-5 * scale));
    CHECK(is_close(c[3][3], c[4][4], 1e-5 * scale));
    CHECK(is_close(c[5][5], (c[0][0] - c[0][1]) / 2, 1e-5 * scale));
    CHECK(constants.asymmetry <= 1e-5 * scale);

    options.relaxes_positions = false;
    const ElasticConstants clamped = compute_elastic_constants(session, constants.crystal, options);
    REQUIRE(clamped.problem == "");
    CHECK(clamped.stiffness[5][5] > c[5][5] + 1e-3 * scale);
    CHECK(is_close(clamped.stiffness[2][2], c[2][2], 1e-4 * scale));  // along the axis, symmetry leaves atoms in place

    // Under pressure the shape of a hexagonal cell changes: with it, the bulk modulus is Reuss's, without it Voigt's.
    EnergyCurveOptions volumes;
    volumes.range = 0.02;
    const ElasticModuli moduli = *constants.moduli;
    for (const bool relaxes_shape : {false, true}) {
        volumes.relaxes_shape = relaxes_shape;
        const EnergyCurve curve = compute_energy_curve(session, constants.crystal, EnergyForm::vinet, volumes);
        REQUIRE(curve.problem == "");
        CHECK(is_close(curve.fit->equation.bulk_modulus / kGigapascal,
                       relaxes_shape ? moduli.bulk.reuss : moduli.bulk.voigt, 1e-3 * moduli.bulk.hill));
    }
}

TEST_CASE("at constant volume only the shape of a cell relaxes") {
    Session session = session_with(1);
    RelaxationOptions options;
    options.with_cell = options.keeps_volume = true;
    options.largest_stress = 1e-6;
    const Mat3 strain = {{{1.05, 0.03, 0}, {0.03, 0.97, -0.02}, {0, -0.02, 1.04}}};
    const Particles start = deformed(face_centred_cubic(2.5), strain);
    const Relaxation result = std::move(relaxed(session, {start}, options).front());
    CHECK(result.is_converged());
    CHECK(result.move_count() > 2);
    const Mat3& cell = result.particles().environment.cell;
    const double volume = cell_volume(start), side = std::cbrt(std::sqrt(2.0) * volume);
    CHECK(is_close(cell_volume(result.particles()), volume, 1e-10 * volume));
    for (size_t a = 0; a < 3; ++a)
        for (size_t b = 0; b < 3; ++b) {
            const double product = cell[a][0] * cell[b][0] + cell[a][1] * cell[b][1] + cell[a][2] * cell[b][2];
            CHECK(is_close(product, (a == b ? 1 : 0.5) * side * side, 1e-4));
        }
    options.pressure = 1;
    CHECK(status_of([&] { Relaxation(start, options); }, "constant volume") == Status::argument);
}

TEST_CASE("moduli are those of textbooks") {
    ElasticConstants constants;
    const auto set_cubic = [&](double c11, double c12, double c44) {
        constants.stiffness = {};
        for (size_t i = 0; i < 3; ++i)
            for (size_t j = 0; j < 3; ++j) {
                constants.stiffness[i][j] = i == j ? c11 : c12;
                constants.stiffness[i + 3][j + 3] = i == j ? c44 : 0;
            }
        analyse_stiffness(constants);
    };
    set_cubic(168.4, 121.4, 75.4);  // copper
    REQUIRE(constants.moduli);
    const ElasticModuli& copper = *constants.moduli;
    CHECK(is_close(copper.bulk.hill, 137.07, 0.01));
    CHECK(is_close(copper.shear.voigt, 54.64, 0.01));
    CHECK(is_close(copper.shear.reuss, 40.03, 0.01));
    CHECK(is_close(copper.universal_anisotropy, 1.825, 0.01));
    CHECK(is_close(young_modulus_along(*constants.compliance, {1, 0, 0}), 66.69, 0.01));
    const double third = 1 / std::sqrt(3.0);
    CHECK(is_close(young_modulus_along(*constants.compliance, {third, third, third}), 191.14, 0.05));
    CHECK_ALL_CLOSE(constants.eigenvalues, (Voigt{47, 47, 150.8, 150.8, 150.8, 411.2}), 1e-9);

    const double bulk = 50, shear = 30, young = 9 * bulk * shear / (3 * bulk + shear);
    set_cubic(bulk + 4 * shear / 3, bulk - 2 * shear / 3, shear);
    CHECK(is_close(constants.moduli->young, young, 1e-9));
    CHECK(is_close(constants.moduli->poisson, (3 * bulk - 2 * shear) / (2 * (3 * bulk + shear)), 1e-12));
    CHECK(is_close(constants.moduli->universal_anisotropy, 0, 1e-12));
    CHECK(is_close(young_modulus_along(*constants.compliance, {0.6, 0, 0.8}), young, 1e-9));

    set_cubic(100, 120, 40);  // gets lower in energy when it becomes tetragonal
    CHECK(!constants.is_stable);
    CHECK(!constants.moduli);
    CHECK(!constants.compliance);
    CHECK(is_close(constants.eigenvalues[0], -20, 1e-9));
    CHECK(status_of([&] { set_cubic(100, std::nan(""), 40); }, "is not finite") == Status::system);
}

TEST_CASE("crystals without elastic constants or an equation of state are refused, or named") {
    Session session = session_with(1);
    const auto constants_of = [&](const Particles& crystal, const ElasticOptions& options) {
        return compute_elastic_constants(session, crystal, options);
    };
    const auto curve_of = [&](const Particles& crystal, const EnergyCurveOptions& options) {
        return compute_energy_curve(session, crystal, EnergyForm::birch_murnaghan, options);
    };
    Particles slab = face_centred_cubic(2.6);
    slab.environment.periodic[1] = false;
    CHECK(status_of([&] { constants_of(slab, {}); }, "direction 2 is not") == Status::system);
    CHECK(status_of([&] { curve_of(slab, {}); }, "direction 2 is not") == Status::system);
    Particles flat = face_centred_cubic(2.6);
    flat.environment.cell[2] = flat.environment.cell[1];
    CHECK(status_of([&] { curve_of(flat, {}); }, "a cell with a volume") == Status::system);
    for (const double strain : {0.0, -0.01, 0.2, std::nan("")}) {
        ElasticOptions options;
        options.strain = strain;
        CHECK(status_of([&] { constants_of(face_centred_cubic(2.6), options); }, "a strain of") == Status::argument);
    }
    for (const double range : {0.0, -0.1, 0.6, std::nan("")}) {
        EnergyCurveOptions options;
        options.range = range;
        CHECK(status_of([&] { curve_of(face_centred_cubic(2.6), options); }, "a range of") == Status::argument);
    }
    EnergyCurveOptions one;
    one.volume_count = 1;
    CHECK(status_of([&] { curve_of(face_centred_cubic(2.6), one); }, "from 1 volumes") == Status::argument);

    ElasticOptions as_it_is;
    as_it_is.relaxes_cell = false;
    const ElasticConstants compressed = constants_of(face_centred_cubic(2.2), as_it_is);
    CHECK(compressed.problem.find("relax the cell") != std::string::npos);
    CHECK(!compressed.moduli);
    CHECK(compressed.residual_stress[0] < -1);
    const ElasticConstants square = constants_of(simple_cubic(2.5), {});
    CHECK(square.problem.find("not mechanically stable") != std::string::npos);
    CHECK(!square.is_stable);
    CHECK(square.eigenvalues[0] < 0);
    ElasticOptions impatient;
    impatient.step_limit = 1;
    CHECK(constants_of(face_centred_cubic(2.5), impatient).problem.find("did not converge within 1 steps") !=
          std::string::npos);
    const EnergyCurve wide_apart = curve_of(face_centred_cubic(3.0), {});
    CHECK(wide_apart.problem.find("lowest at the smallest volume") != std::string::npos);
    CHECK(!wide_apart.fit);
    CHECK(wide_apart.energies.size() == 11);
}
