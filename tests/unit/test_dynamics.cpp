// SPDX-License-Identifier: MIT
// Dynamics as physics: conservation laws, the order of the integrator, the temperature of a bath.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "analytic/model.h"
#include "core/elements.h"
#include "core/error.h"
#include "dynamics/counter_random.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/units.h"
#include "test_dynamics_support.h"

using namespace mlff;

namespace {

// A small loose cluster of argon-like atoms, relaxed enough not to fly apart.
Particles cluster() {
    static const std::vector<int32_t> numbers(8, 18);
    static const std::vector<double> positions = {0,   0, 0,   2.1, 0.1, 0,   0, 2.2, 0.1, 2.1, 2.1, 0,
                                                  0.1, 0, 2.1, 2.2, 0,   2.1, 0, 2.1, 2.2, 2.1, 2.2, 2.1};
    SystemView system;
    system.atom_count = 8;
    system.atomic_numbers = numbers.data();
    system.positions = positions.data();
    return Particles(system);
}

Session analytic_session() {
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = 1;
    return Session(make_analytic_model(), options);
}

struct EnergyRecord {
    double spread;  // standard deviation of the total energy
    double drift;   // its slope, by least squares, times the length of the run
};

EnergyRecord record_energy(double time_step, double length) {
    Session session = analytic_session();
    Particles particles = cluster();
    set_temperature(particles, 150, 3);
    MolecularDynamics dynamics(session, particles, time_step);
    const double start = dynamics.total_energy();
    const int steps = static_cast<int>(length / time_step);
    double sum = 0, squares = 0, weighted = 0;
    for (int i = 0; i < steps; ++i) {
        dynamics.step();
        const double change = dynamics.total_energy() - start;
        sum += change;
        squares += change * change;
        weighted += change * ((i + 0.5) / steps - 0.5);
    }
    return {std::sqrt(squares / steps - sum * sum / steps / steps), 12 * weighted / steps};
}

}  // namespace

TEST_CASE("random bits are those of the published test vectors, and normals are normal") {
    CHECK(random_bits(0, 0, 0) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(random_bits(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}) ==
          std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    double sum = 0, squares = 0, fourth = 0;
    constexpr int kDraws = 100'000;
    for (uint64_t i = 0; i < kDraws; ++i)
        for (double x : random_normals(5, i / 100, i % 100)) {
            CHECK_UNARY(std::isfinite(x));
            sum += x;
            squares += x * x;
            fourth += x * x * x * x;
        }
    constexpr double n = 3.0 * kDraws;
    CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
    CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2 / n));
    CHECK(std::abs(fourth / n - 3) < 5 * std::sqrt(96 / n));
}

TEST_CASE("velocities have the temperature that was asked for, no momentum and no rotation") {
    CHECK(atomic_mass(1) == doctest::Approx(1.008));
    CHECK(atomic_mass(118) > 290);
    CHECK_THROWS_AS(atomic_mass(0), Error);
    Particles particles = cluster();
    set_temperature(particles, 300, 11);  // with rotation, which is not counted as being at rest
    CHECK(particles.temperature() == doctest::Approx(300));
    CHECK(particles.kinetic_energy() == doctest::Approx(0.5 * 21 * kBoltzmann * 300));
    Particles without = particles;
    remove_rotation(without);
    CHECK(without.kinetic_energy() < 0.999 * particles.kinetic_energy());
    particles.rigid_degrees = 6;
    set_temperature(particles, 300, 11);
    CHECK(particles.temperature() == doctest::Approx(300));
    CHECK(particles.kinetic_energy() == doctest::Approx(0.5 * 18 * kBoltzmann * 300));
    for (double p : particles.momentum()) CHECK(std::abs(p) < 1e-12);
    Particles again = particles;
    remove_rotation(again);
    for (size_t i = 0; i < again.velocities.size(); ++i)
        CHECK(std::abs(again.velocities[i] - particles.velocities[i]) < 1e-14);
    CHECK_THROWS_AS(set_temperature(particles, -1, 1), Error);
    CHECK_THROWS_AS(set_temperature(particles, INFINITY, 1), Error);
}

TEST_CASE("without a bath the total energy fluctuates as the square of the time step, and does not drift") {
    const double coarse = record_energy(1, 500).spread, fine = record_energy(0.5, 500).spread,
                 finest = record_energy(0.25, 500).spread;
    CHECK(coarse > 1e-6);
    CHECK(coarse / fine == doctest::Approx(4).epsilon(0.05));
    CHECK(fine / finest == doctest::Approx(4).epsilon(0.05));
    const EnergyRecord longer = record_energy(1, 20'000);
    CHECK(std::abs(longer.drift) < 0.1 * longer.spread);
}

TEST_CASE("velocity Verlet keeps what it keeps exactly to rounding: the modified energy of springs") {
    // For frequency w and step h the energy with k replaced by k (1 - (w h)^2 / 4) is a constant of the algorithm
    // itself.
    constexpr double kStiffness = 5;
    const std::vector<double> centers = {0, 0, 0, 5, 0, 0};
    test::Springs springs(centers, kStiffness);
    Particles particles = test::argon_atoms(centers);
    particles.rigid_degrees = 0;
    set_temperature(particles, 300, 9);
    DynamicsOptions options;
    options.time_step = 5;
    MolecularDynamics dynamics(springs, particles, options);
    const double wh_squared = kStiffness / particles.masses[0] * kAccelerationUnit * 25;
    const auto constant = [&] {
        return dynamics.particles().kinetic_energy() + dynamics.potential_energy() * (1 - wh_squared / 4);
    };
    const double start = constant();
    double worst = 0, ordinary = 0;
    for (int i = 0; i < 100'000; ++i) {
        dynamics.step();
        worst = std::max(worst, std::abs(constant() - start));
        ordinary = std::max(ordinary, std::abs(dynamics.total_energy() - start));
    }
    CHECK(worst < 1e-11 * start);
    CHECK(ordinary > 1e-4 * start);
}

TEST_CASE("without a bath the momentum is kept, and the way back is the way there") {
    Session session = analytic_session();
    Particles particles = cluster();
    set_temperature(particles, 150, 3);
    MolecularDynamics dynamics(session, particles, 2);
    for (int i = 0; i < 200; ++i) dynamics.step();
    for (double p : dynamics.particles().momentum()) CHECK(std::abs(p) < 1e-11);
    // Backwards in time it comes to where it began.
    Particles back = dynamics.particles();
    for (double& v : back.velocities) v = -v;
    MolecularDynamics reversed(session, back, 2);
    for (int i = 0; i < 200; ++i) reversed.step();
    for (size_t i = 0; i < particles.positions.size(); ++i)
        CHECK(std::abs(reversed.particles().positions[i] - particles.positions[i]) < 1e-8);
}

TEST_CASE("a bath gives its temperature, and the same seed the same run") {
    Session session = analytic_session();
    const LangevinBath bath = {200, 0.02, 17};
    MolecularDynamics dynamics(session, cluster(), 4, bath), same(session, cluster(), 4, bath);
    double sum = 0;
    int count = 0;
    for (int i = 0; i < 30'000; ++i) {
        dynamics.step();
        if (i < 50) same.step();
        if (i == 49) CHECK(same.particles().positions == dynamics.particles().positions);
        if (i < 2000) continue;
        sum += 2 * dynamics.particles().kinetic_energy() /
               (3 * 8 * kBoltzmann);  // the bath moves the centre of mass as well
        ++count;
    }
    CHECK(sum / count == doctest::Approx(200).epsilon(0.03));
    CHECK_THROWS_AS(MolecularDynamics(session, cluster(), 0), Error);
    CHECK_THROWS_AS(MolecularDynamics(session, cluster(), 1, LangevinBath{-5, 0.01, 1}), Error);
}
