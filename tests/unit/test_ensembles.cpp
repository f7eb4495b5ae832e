// SPDX-License-Identifier: MIT
// Thermostats and barostats against the distributions of statistical mechanics, with fixed seeds.
#include <doctest/doctest.h>

#include <cmath>

#include "../tags.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/counter_random.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/nose_hoover.h"
#include "dynamics/units.h"
#include "test_dynamics_support.h"

using namespace mlff;
using namespace mlff::test;

namespace {

using Kind = ThermostatOptions::Kind;

// The probability that a chi-square number of an even number of degrees is below x: 1 - exp(-x/2) sum over j <
// degrees/2 of (x/2)^j / j!
double chi_square_below(double x, int64_t degrees) {
    double term = std::exp(-0.5 * x), above = 0;
    for (int64_t j = 0; 2 * j < degrees; ++j) {
        above += term;
        term *= 0.5 * x / static_cast<double>(j + 1);
    }
    return 1 - above;
}

// Counts of numbers in ten intervals that are equally likely, against that likelihood: chi-square of nine degrees,
// above 27.9 once in a thousand.
double distance_from_chi_square(const std::vector<double>& numbers, int64_t degrees) {
    std::array<double, 10> counts{};
    for (double x : numbers) counts[std::min<size_t>(static_cast<size_t>(10 * chi_square_below(x, degrees)), 9)] += 1;
    const double expected = static_cast<double>(numbers.size()) / 10;
    double sum = 0;
    for (double count : counts) sum += (count - expected) * (count - expected) / expected;
    return sum;
}

std::vector<double> places(size_t atoms) {
    std::vector<double> positions;
    for (size_t i = 0; i < 3 * atoms; ++i) positions.push_back(static_cast<double>(i * 7 % 11));
    return positions;
}

struct Statistics {
    double temperature, variance_ratio, chi_square;
};

// Of the kinetic energy, which in the canonical ensemble is kT/2 times a chi-square number.
Statistics run(ForceProvider& provider, Particles particles, const DynamicsOptions& options, int samples,
               int steps_between) {
    MolecularDynamics dynamics(provider, std::move(particles), options);
    for (int i = 0; i < 20 * steps_between; ++i) dynamics.step();
    const double kT = kBoltzmann * options.thermostat.temperature;
    const int64_t degrees = dynamics.particles().degrees_of_freedom();
    std::vector<double> numbers;
    double sum = 0, squares = 0;
    for (int i = 0; i < samples; ++i) {
        for (int k = 0; k < steps_between; ++k) dynamics.step();
        numbers.push_back(2 * dynamics.particles().kinetic_energy() / kT);
        sum += numbers.back();
        squares += numbers.back() * numbers.back();
    }
    const double mean = sum / samples, variance = squares / samples - mean * mean;
    return {mean / static_cast<double>(degrees) * options.thermostat.temperature,
            variance / (2 * static_cast<double>(degrees)), distance_from_chi_square(numbers, degrees)};
}

Particles warm(Particles particles, double temperature) {
    set_temperature(particles, temperature, 5);
    return particles;
}

}  // namespace

TEST_CASE("chi-square numbers have their mean, variance and distribution") {
    for (const int64_t degrees : {2, 8, 60}) {
        std::vector<double> numbers;
        for (uint64_t i = 0; i < 5000; ++i) numbers.push_back(random_chi_square(3, i, kThermostatDraw, degrees));
        CHECK(distance_from_chi_square(numbers, degrees) < 27.9);
    }
    CHECK(random_chi_square(3, 1, 0, 0) == 0);
    CHECK(random_chi_square(3, 1, 0, 1) == std::pow(random_normals(3, 1, 0)[0], 2));
    // The check itself: numbers of another distribution are found out.
    std::vector<double> wrong;
    for (uint64_t i = 0; i < 5000; ++i) wrong.push_back(1.1 * random_chi_square(3, i, kThermostatDraw, 8));
    CHECK(distance_from_chi_square(wrong, 8) > 50);
}

TEST_CASE("each thermostat gives the canonical distribution of the kinetic energy" * kSlowUnderSanitizers) {
    const std::vector<double> start = places(9);  // 24 degrees of freedom with the centre of mass at rest
    DynamicsOptions options;
    options.time_step = 2;
    options.thermostat = {Kind::rescaling, 500, 20, 11};
    SUBCASE("stochastic velocity rescaling") {}
    SUBCASE("Nose-Hoover chains") {
        options.thermostat.kind = Kind::nose_hoover;
        options.thermostat.relaxation_time = 30;
    }
    SUBCASE("Langevin") {
        options.thermostat.kind = Kind::langevin;
        options.thermostat.relaxation_time = 40;
    }
    HardeningRing ring(start);
    Particles particles = warm(argon_atoms(start), 500);
    if (options.thermostat.kind == Kind::langevin) {  // an even number of degrees for the sum above: one atom less
        const std::vector<double> fewer = places(8);
        HardeningRing shorter(fewer);
        const Statistics found = run(shorter, warm(argon_atoms(fewer), 500), options, 4000, 40);
        CHECK(found.temperature == doctest::Approx(500).epsilon(0.01));
        CHECK(found.variance_ratio == doctest::Approx(1).epsilon(0.06));
        CHECK(found.chi_square < 27.9);
        return;
    }
    const Statistics found = run(ring, particles, options, 4000, 40);
    CHECK(found.temperature == doctest::Approx(500).epsilon(0.01));
    CHECK(found.variance_ratio == doctest::Approx(1).epsilon(0.06));
    CHECK(found.chi_square < 27.9);
}

TEST_CASE("Langevin and rescaling give springs their mean energy, with fixed atoms too") {
    const std::vector<double> start = places(8);
    for (const Kind kind : {Kind::langevin, Kind::rescaling}) {
        Springs springs(start, 3);
        Particles particles = argon_atoms(start);
        particles.is_fixed = {1, 0, 0, 1, 0, 0, 0, 0};
        CHECK(particles.degrees_of_freedom() == 18);
        DynamicsOptions options;
        options.time_step = 4;
        options.thermostat = {kind, 300, 50, 23};
        MolecularDynamics dynamics(springs, warm(particles, 300), options);
        double kinetic = 0, potential = 0;
        constexpr int kSteps = 100'000;
        for (int i = 0; i < kSteps; ++i) {
            dynamics.step();
            kinetic += dynamics.particles().kinetic_energy() / kSteps;
            potential += dynamics.potential_energy() / kSteps;
        }
        CHECK(kinetic == doctest::Approx(9 * kBoltzmann * 300).epsilon(0.015));
        CHECK(potential == doctest::Approx(9 * kBoltzmann * 300).epsilon(0.015));
        for (size_t i : {0, 1, 2, 9, 10, 11}) {
            CHECK(dynamics.particles().positions[i] == start[i]);
            CHECK(dynamics.particles().velocities[i] == 0);
        }
    }
}

TEST_CASE("heat is what thermostats brought in: the energy without it is kept") {
    const std::vector<double> start = places(6);
    for (const Kind kind : {Kind::langevin, Kind::nose_hoover, Kind::rescaling}) {
        HardeningRing ring(start);
        DynamicsOptions options;
        options.time_step = 0.5;
        options.thermostat = {kind, 400, 40, 1};
        MolecularDynamics dynamics(ring, warm(argon_atoms(start), 200), options);
        const double begin = dynamics.total_energy();
        for (int i = 0; i < 2000; ++i) dynamics.step();
        CHECK(std::abs(dynamics.heat()) > 0.02);
        CHECK(std::abs(dynamics.conserved_energy() - begin) < 2e-4);
    }
}

TEST_CASE("the energy of atoms and Nose-Hoover chain together is kept, and heat is what the chain gave") {
    const std::vector<double> start = places(6);
    Particles particles = warm(argon_atoms(start), 400);
    HardeningRing ring(start);
    double worst[2] = {};
    for (const int fine : {0, 1}) {
        DynamicsOptions options;
        options.time_step = fine ? 1 : 2;
        options.thermostat = {Kind::nose_hoover, 400, 40, 1};
        MolecularDynamics dynamics(ring, particles, options);
        NoseHoover chain(options.thermostat, dynamics.particles().degrees_of_freedom(), options.time_step);
        const double begin = dynamics.total_energy();
        for (int i = 0; i < 2000 / options.time_step; ++i) {
            dynamics.step();
            const std::vector<double> state = dynamics.state().thermostat;
            std::copy(state.begin(), state.end(), chain.state().begin());
            worst[fine] = std::max(worst[fine], std::abs(dynamics.total_energy() + chain.energy() - begin));
            CHECK(std::abs(dynamics.heat() + chain.energy()) < 2e-5);
        }
        CHECK(std::abs(dynamics.heat()) > 1e-3);
    }
    CHECK(worst[0] < 2e-3);
    CHECK(worst[0] / worst[1] > 2.5);
}

TEST_CASE("an ideal gas under pressure has the volume and the fluctuation of its law" * kSlowUnderSanitizers) {
    BarostatOptions barostat;
    barostat.relaxation_time = 60;
    barostat.every = 1;
    SUBCASE("isotropic, every second step") { barostat.every = 2; }
    SUBCASE("full cell") { barostat.full_cell = true; }
    constexpr size_t kAtoms = 48;
    constexpr double kTemperature = 300;
    // P V = f/3 + 1 times kT for f degrees of freedom; the compressibility of an ideal gas is 1/P
    barostat.pressure = 1000;
    barostat.compressibility = 1 / barostat.pressure;
    const double expected = kAtoms * kBoltzmann * kTemperature / (barostat.pressure * kBar);
    std::vector<double> positions = places(kAtoms);
    DynamicsOptions options;
    options.time_step = 1;
    options.thermostat = {Kind::rescaling, kTemperature, 5, 3};
    options.barostat = barostat;
    IdealGas gas;
    MolecularDynamics dynamics(gas, warm(argon_atoms(positions, std::cbrt(expected)), kTemperature), options);
    double sum = 0, squares = 0;
    constexpr int kSteps = 100'000;
    for (int i = 0; i < kSteps; ++i) {
        dynamics.step();
        const double volume = determinant(dynamics.particles().environment.cell);
        sum += volume / kSteps;
        squares += volume * volume / kSteps;
    }
    CHECK(sum == doctest::Approx(expected).epsilon(0.01));
    CHECK((squares - sum * sum) / (expected * expected) == doctest::Approx(1.0 / kAtoms).epsilon(0.12));
    const Mat3& cell = dynamics.particles().environment.cell;
    if (barostat.full_cell)
        CHECK(cell[0][1] != 0);
    else
        CHECK((cell[0][1] == 0 && cell[0][0] == doctest::Approx(cell[1][1])));
}

TEST_CASE("momentum and rotation are removed when asked for, and the degrees of freedom say so") {
    const std::vector<double> start = places(5);
    HardeningRing ring(start);
    Particles particles = argon_atoms(start);
    for (size_t i = 0; i < particles.velocities.size(); ++i)
        particles.velocities[i] = 1e-3 * std::sin(static_cast<double>(i * i));
    DynamicsOptions options;
    options.remove_momentum_every = 10;
    MolecularDynamics dynamics(ring, particles, options);
    CHECK(dynamics.particles().degrees_of_freedom() == 9);
    CHECK(std::abs(dynamics.particles().momentum()[0]) > 1e-3);
    for (int i = 0; i < 10; ++i) dynamics.step();
    for (double p : dynamics.particles().momentum()) CHECK(std::abs(p) < 1e-14);
    Particles again = dynamics.particles();
    remove_rotation(again);
    for (size_t i = 0; i < again.velocities.size(); ++i)
        CHECK(std::abs(again.velocities[i] - dynamics.particles().velocities[i]) < 1e-16);
}

TEST_CASE("options that make no sense are refused with the reason") {
    IdealGas gas;
    const std::vector<double> start = places(4);
    const auto message = [&](const DynamicsOptions& options, const Particles& particles) -> std::string {
        try {
            MolecularDynamics dynamics(gas, particles, options);
        } catch (const Error& error) {
            return error.what();
        }
        return "accepted";
    };
    const Particles still = argon_atoms(start), moving = warm(still, 300), boxed = warm(argon_atoms(start, 20), 300);
    DynamicsOptions plain;
    CHECK(message(plain, still) == "accepted");
    for (const double step : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
        DynamicsOptions options;
        options.time_step = step;
        CHECK(message(options, still).find("time step") != std::string::npos);
    }
    DynamicsOptions options;
    options.thermostat = {Kind::rescaling, 300, 100, 1};
    CHECK(message(options, moving) == "accepted");
    CHECK(message(options, still).find("at rest") != std::string::npos);
    options.thermostat.relaxation_time = 0;
    CHECK(message(options, moving).find("relaxation time") != std::string::npos);
    options.thermostat = {Kind::nose_hoover, std::nan(""), 100, 1};
    CHECK(message(options, moving).find("K, expected") != std::string::npos);
    options.thermostat = {Kind::langevin, 300, 100, 1};
    options.remove_momentum_every = 10;
    CHECK(message(options, moving).find("Langevin") != std::string::npos);
    options.remove_momentum_every = 0;
    options.barostat = BarostatOptions{};
    CHECK(message(options, boxed) == "accepted");
    CHECK(message(options, moving).find("periodic in all directions") != std::string::npos);
    Particles fixed = boxed;
    fixed.is_fixed = {0, 1, 0, 0};
    CHECK(message(options, fixed).find("fixed") != std::string::npos);
    options.barostat->compressibility = -1;
    CHECK(message(options, boxed).find("compressibility") != std::string::npos);
    options.barostat = BarostatOptions{};
    options.thermostat.kind = Kind::none;
    CHECK(message(options, boxed).find("thermostat") != std::string::npos);
    Particles massless = still;
    massless.masses[2] = 0;
    CHECK(message(plain, massless).find("atom 2") != std::string::npos);
}
