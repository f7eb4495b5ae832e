// SPDX-License-Identifier: MIT
// Minimisers find minima that are known, with and without the cell, several structures at once.
#include <doctest/doctest.h>

#include <cmath>

#include "analytic/model.h"
#include "core/elements.h"
#include "core/error.h"
#include "core/matrix3.h"
#include "dynamics/relaxation_batch.h"
#include "dynamics/units.h"
#include "test_dynamics_support.h"

using namespace mlff;
using namespace mlff::test;

namespace {

using Method = RelaxationOptions::Method;

SessionOptions analytic_options() {
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = 1;
    return options;
}

Session analytic_session() { return Session(make_analytic_model(), analytic_options()); }

double distance(const Particles& particles, size_t a, size_t b) {
    const double* x = particles.positions.data();
    return std::hypot(x[3 * a] - x[3 * b], x[3 * a + 1] - x[3 * b + 1], x[3 * a + 2] - x[3 * b + 2]);
}

double energy_of(Session& session, const Particles& particles) {
    double energy = 0;
    const SystemView system = particles.view();
    Results results;
    results.outputs.energy = &energy;
    session.evaluate({&system, 1}, {&results, 1});
    return energy;
}

// One atom of a face-centred cubic crystal whose atoms are `distance` apart: lattice vectors of that length, 60 degrees
// between them.
Particles close_packed(double distance) {
    Particles crystal = argon_atoms({0.3, 0.1, 0}, 1);
    const double half = distance / std::sqrt(2.0);
    crystal.environment.cell = {{{0, half, half}, {half, 0, half}, {half, half, 0}}};
    return crystal;
}

Particles strained(Particles crystal) {
    const Mat3 strain = {{{1.05, 0.03, 0}, {0.03, 0.97, -0.02}, {0, -0.02, 1.04}}};
    transform_vectors(strain, crystal.environment.cell[0].data(), 3);
    return crystal;
}

}  // namespace

TEST_CASE("FIRE and L-BFGS bring several molecules to their minima together") {
    for (const Method method : {Method::fire, Method::lbfgs}) {
        Session session = analytic_session();
        RelaxationOptions options;
        options.method = method;
        options.largest_force = 1e-4;
        std::vector<Relaxation> relaxations;
        relaxations.emplace_back(argon_atoms({0, 0, 0, 2.6, 0.2, 0}), options);
        relaxations.emplace_back(argon_atoms({0, 0, 0, 1.7, 0, 0, 0.6, 1.6, 0.2}), options);
        Particles held = argon_atoms({0, 0, 0, 2.6, 0, 0, 0, 2.4, 0});
        held.is_fixed = {1, 1, 0};
        relaxations.emplace_back(held, options);
        SessionBatch forces(session, make_analytic_model(), analytic_options());
        relax_together(forces, relaxations);
        const double bond = 2 * covalent_radius(18);
        CHECK(bond == doctest::Approx(distance(relaxations[0].particles(), 0, 1)).epsilon(1e-4));
        for (const auto& [a, b] : {std::pair<size_t, size_t>{0, 1}, {0, 2}, {1, 2}})
            CHECK(bond == doctest::Approx(distance(relaxations[1].particles(), a, b)).epsilon(1e-4));
        CHECK(relaxations[1].energy() == doctest::Approx(-3).epsilon(1e-6));
        CHECK(distance(relaxations[2].particles(), 0, 1) == doctest::Approx(2.6));  // held apart
        CHECK(distance(relaxations[2].particles(), 0, 2) == doctest::Approx(bond).epsilon(1e-3));
        for (const Relaxation& relaxation : relaxations) {
            CHECK(relaxation.is_converged());
            CHECK(relaxation.largest_force() <= 1e-4);
            CHECK(relaxation.move_count() > 2);
            CHECK(relaxation.move_count() < (method == Method::fire ? 300 : 60));
            CHECK(relaxation.energy() == doctest::Approx(energy_of(session, relaxation.particles())));
        }
    }
}

TEST_CASE("with the cell a strained crystal becomes regular again, and smaller under pressure") {
    for (const Method method : {Method::fire, Method::lbfgs}) {
        Session session = analytic_session();
        RelaxationOptions options;
        options.method = method;
        options.with_cell = true;
        options.largest_stress = 1e-6;
        std::vector<Relaxation> relaxations;
        relaxations.emplace_back(strained(close_packed(2.1)), options);
        options.pressure = 50'000;
        relaxations.emplace_back(strained(close_packed(2.1)), options);
        SessionBatch forces(session, make_analytic_model(), analytic_options());
        relax_together(forces, relaxations);
        double side[2];
        for (size_t i = 0; i < 2; ++i) {
            CHECK(relaxations[i].is_converged());
            const Mat3& cell = relaxations[i].particles().environment.cell;
            side[i] = std::cbrt(std::sqrt(2.0) * determinant(cell));
            for (size_t a = 0; a < 3; ++a)
                for (size_t b = 0; b < 3; ++b) {
                    const double product = cell[a][0] * cell[b][0] + cell[a][1] * cell[b][1] + cell[a][2] * cell[b][2];
                    CHECK(std::abs(product - (a == b ? 1 : 0.5) * side[i] * side[i]) < 2e-3);
                }
        }
        CHECK(side[1] < side[0] - 1e-3);
        // At the minimum the slope of the energy by volume is the pressure, found here by finite differences.
        for (size_t i = 0; i < 2; ++i) {
            const double h = 1e-3, s = side[i];
            const double slope = (energy_of(session, close_packed(s + h)) - energy_of(session, close_packed(s - h))) /
                                 ((std::pow(s + h, 3) - std::pow(s - h, 3)) / std::sqrt(2.0));
            CHECK(std::abs(slope + (i == 1 ? 50'000 * kBar : 0)) < 1e-4);
        }
    }
}

TEST_CASE("a relaxation stops at its limit, and refuses what it cannot do") {
    Session session = analytic_session();
    RelaxationOptions options;
    options.step_limit = 3;
    std::vector<Relaxation> relaxations;
    relaxations.emplace_back(argon_atoms({0, 0, 0, 3.4, 0.2, 0}), options);
    SessionBatch forces(session, make_analytic_model(), analytic_options());
    relax_together(forces, relaxations);
    CHECK(!relaxations[0].is_converged());
    CHECK(relaxations[0].move_count() == 3);
    CHECK(relaxations[0].energy() == doctest::Approx(energy_of(session, relaxations[0].particles())));
    options.with_cell = true;
    CHECK_THROWS_AS(Relaxation(argon_atoms({0, 0, 0}), options), Error);
    options.largest_force = std::nan("");
    CHECK_THROWS_AS(Relaxation(argon_atoms({0, 0, 0}, 5), options), Error);
    Relaxation relaxation(argon_atoms({0, 0, 0}), RelaxationOptions{});
    CHECK_THROWS_AS(relaxation.advance(std::nan(""), std::vector<double>(3), {}), Error);
    CHECK_THROWS_AS(relaxation.advance(0, std::vector<double>(3, std::nan("")), {}), Error);
}
