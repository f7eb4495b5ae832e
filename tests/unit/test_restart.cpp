// SPDX-License-Identifier: MIT
// A run that is interrupted goes on as if it had not been, to the last bit; restart files that are broken are refused.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "analytic/model.h"
#include "core/error.h"
#include "dynamics/restart.h"
#include "dynamics/session_forces.h"
#include "dynamics/stability.h"
#include "formats/safetensors.h"
#include "test_dynamics_support.h"

using namespace mlff;
using namespace mlff::test;

namespace {

using Kind = ThermostatOptions::Kind;

struct TemporaryFile {
    std::string path =
        (std::filesystem::temp_directory_path() / ("mlff-restart-" + std::to_string(::getpid()))).string();
    ~TemporaryFile() { std::filesystem::remove(path); }
};

// A session of its own: where it searched neighbours before must not matter.
Session fresh_session() {
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = 1;
    options.neighbor_skin = NeighborSkin::of(0.4);
    return Session(make_analytic_model(), options);
}

// Atoms on a grid, near enough to the model's distance, each moved a little.
Particles crystal() {
    std::vector<double> positions;
    for (int i = 0; i < 27; ++i)
        for (const int step : {i % 3, i / 3 % 3, i / 9})
            positions.push_back(2.3 * step + 0.05 * std::sin(static_cast<double>(positions.size() * 3)));
    Particles particles = argon_atoms(positions, 6.9);
    set_temperature(particles, 900, 2);
    return particles;
}

void check_same_bits(const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    CHECK((found.empty() || std::memcmp(found.data(), expected.data(), found.size() * sizeof(double)) == 0));
}

std::string message_of(const std::string& path) {
    try {
        read_restart(path);
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("100 steps, a restart file and 100 steps are 200 steps, bit for bit, in every ensemble") {
    DynamicsOptions options;
    options.time_step = 4;
    Particles start = crystal();
    SUBCASE("constant energy") {}
    SUBCASE("constant energy, momentum removed") { options.remove_momentum_every = 7; }
    SUBCASE("Langevin with fixed atoms") {
        options.thermostat = {Kind::langevin, 900, 50, 4};
        start.is_fixed.assign(27, 0);
        start.is_fixed[5] = start.is_fixed[13] = 1;
    }
    SUBCASE("Nose-Hoover") { options.thermostat = {Kind::nose_hoover, 900, 50, 4}; }
    SUBCASE("rescaling") { options.thermostat = {Kind::rescaling, 900, 50, 4}; }
    SUBCASE("constant pressure") {
        options.thermostat = {Kind::rescaling, 900, 50, 4};
        options.barostat = BarostatOptions{1000, 500, 1e-6, false, 3};
    }
    SUBCASE("constant pressure, full cell, Nose-Hoover") {
        options.thermostat = {Kind::nose_hoover, 900, 50, 4};
        options.barostat = BarostatOptions{1000, 500, 1e-6, true, 3};
    }
    SUBCASE("constant pressure, full cell, Langevin") {
        options.thermostat = {Kind::langevin, 900, 50, 4};
        options.barostat = BarostatOptions{1000, 500, 1e-6, true, 10};
    }
    const TemporaryFile file;
    Session one = fresh_session(), other = fresh_session();
    SessionForces forces(one), other_forces(other);
    MolecularDynamics dynamics(forces, start, options);
    for (int i = 0; i < 100; ++i) dynamics.step();
    write_restart(file.path, {dynamics.state(), {{"option", "value"}}});
    for (int i = 0; i < 100; ++i) dynamics.step();

    const Restart restart = read_restart(file.path);
    CHECK(restart.run == std::map<std::string, std::string>{{"option", "value"}});
    MolecularDynamics resumed(other_forces, restart.state, options);
    CHECK(resumed.step_count() == 100);
    for (int i = 0; i < 100; ++i) resumed.step();
    const DynamicsState found = resumed.state(), expected = dynamics.state();
    CHECK(found.step_count == 200);
    check_same_bits(found.particles.positions, expected.particles.positions);
    check_same_bits(found.particles.velocities, expected.particles.velocities);
    check_same_bits(found.thermostat, expected.thermostat);
    check_same_bits(resumed.forces(), dynamics.forces());
    CHECK(found.particles.environment.cell == expected.particles.environment.cell);
    CHECK(found.heat == expected.heat);
    CHECK(found.potential_energy == expected.potential_energy);
    // The check itself: the run does depend on its velocities.
    CHECK(expected.particles.positions != restart.state.particles.positions);
}

TEST_CASE("a state of another model or thermostat is refused") {
    Session session = fresh_session();
    SessionForces forces(session);
    DynamicsOptions options;
    MolecularDynamics dynamics(forces, crystal(), options);
    DynamicsState state = dynamics.state();
    state.potential_energy += 1;
    CHECK_THROWS_AS(MolecularDynamics(forces, state, options), Error);
    state = dynamics.state();
    options.thermostat = {Kind::nose_hoover, 300, 100, 1};
    CHECK_THROWS_AS(MolecularDynamics(forces, state, options), Error);
}

TEST_CASE("restart files that are cut, changed or hold nonsense are refused with what is wrong") {
    const TemporaryFile file;
    Session session = fresh_session();
    SessionForces forces(session);
    const Restart good = {MolecularDynamics(forces, crystal(), DynamicsOptions{}).state(), {}};
    write_restart(file.path, good);
    CHECK(message_of(file.path) == "accepted");
    const auto size = std::filesystem::file_size(file.path);
    for (const uintmax_t cut : {uintmax_t{0}, uintmax_t{7}, uintmax_t{100}, size / 2, size - 1}) {
        write_restart(file.path, good);
        std::filesystem::resize_file(file.path, cut);
        CHECK(message_of(file.path).find(file.path) == 0);
    }
    const auto broken = [&](auto change) {
        Restart restart = good;
        change(restart.state);
        write_restart(file.path, restart);
        return message_of(file.path);
    };
    CHECK(broken([](DynamicsState& s) {
              s.particles.positions[4] = std::nan("");
          }).find("'positions' holds a number that is not finite") != std::string::npos);
    CHECK(broken([](DynamicsState& s) { s.particles.velocities[4] = HUGE_VAL; }).find("'velocities'") !=
          std::string::npos);
    CHECK(broken([](DynamicsState& s) { s.particles.masses[0] = -1; }).find("mass") != std::string::npos);
    CHECK(broken([](DynamicsState& s) { s.particles.atomic_numbers[0] = 999; }).find("999") != std::string::npos);
    CHECK(broken([](DynamicsState& s) { s.step_count = -1; }).find("step") != std::string::npos);

    // Metadata and tensors of another kind of file.
    write_restart(file.path, good);
    const auto rewrite = [&](auto change) {
        write_restart(file.path, good);
        const auto mapped = MappedFile::open(file.path);
        Safetensors contents = read_safetensors(mapped->bytes(), "x");
        change(contents);
        write_safetensors(file.path, contents);  // beside the mapped file, then in its place
        return message_of(file.path);
    };
    CHECK(rewrite([](Safetensors& s) { s.metadata["version"] = "2"; }).find("version '2'") != std::string::npos);
    CHECK(rewrite([](Safetensors& s) { s.metadata["format"] = "mlff-painn"; }).find("mlff-painn") != std::string::npos);
    CHECK(rewrite([](Safetensors& s) { s.metadata.clear(); }).find("not a restart file") != std::string::npos);
    CHECK(rewrite([](Safetensors& s) { s.tensors[0].first = "stranger"; }) != "accepted");
    CHECK(rewrite([](Safetensors& s) {
              s.tensors.emplace_back("stranger", s.tensors[0].second);
          }).find("unknown tensors") != std::string::npos);
}

TEST_CASE("a run that breaks says which atom and what was closest to what") {
    Particles particles = argon_atoms({0, 0, 0, 3, 0, 0, 3, 0.7, 0, 0, 4, 0});
    const StabilityGuard guard(particles, {1000, 20});
    guard.check(particles, 1);
    const auto message = [&] {
        try {
            guard.check(particles, 7);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    particles.velocities[4] = 1;
    CHECK(message().find("fastest atom is 1 (Ar); the closest atoms are 1 (Ar) and 2 (Ar), 0.7 A apart") !=
          std::string::npos);
    particles.velocities[4] = std::nan("");
    CHECK(message().find("temperature") != std::string::npos);
    particles.velocities[4] = 0;
    particles.positions[10] = 60;
    CHECK(message().find("atom 3 (Ar) is lost at step 7") != std::string::npos);
    particles.positions[10] = std::nan("");
    CHECK(message().find("lost") != std::string::npos);
    // Through the boundary, and from an atom to its own image.
    CHECK(closest_pair(argon_atoms({0.1, 0, 0, 9.8, 0, 0}, 10).view())->distance == doctest::Approx(0.3));
    CHECK(closest_pair(argon_atoms({0, 0, 0}, 4).view())->distance == doctest::Approx(4));
    CHECK(!closest_pair(argon_atoms({0, 0, 0}).view()));
}
