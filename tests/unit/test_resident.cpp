// SPDX-License-Identifier: MIT
// Dynamics that stay on a GPU: water with the embedded student and with MACE. Tests that need a GPU pass without one,
// unless MLFF_REQUIRE_GPU is set.
#include <doctest/doctest.h>

#include "dynamics/session_forces.h"
#include "model_files.h"
#include "resident_checks.h"
#include "test_gpu_support.h"
#include "test_mace_support.h"
#include "tools/validate/systems.h"

using namespace mlff;
using Kind = ThermostatOptions::Kind;

namespace {

class SessionBed : public test::ResidentBed {
public:
    SessionBed(const std::string& model, const SessionOptions& options)
        : session_(load_model(model), options), forces_(session_) {}
    ForceProvider& forces() override { return forces_; }
    DeviceStepper& stepper() override { return *session_.device_stepper(); }
    ThreadTeam& team() override { return session_.team(); }

private:
    Session session_;
    SessionForces forces_;
};

test::MakeBed beds(const std::string& model, Precision precision = Precision::fp64) {
    return [=] {
        SessionOptions options;
        options.device = "cuda";
        options.precision = precision;
        options.neighbor_skin = NeighborSkin::of(0.25);
        return std::make_unique<SessionBed>(model, options);
    };
}

Particles warm(const std::string& name, const DynamicsOptions& options, double temperature = 600) {
    Particles particles(validate::chosen_systems({name}, {1, 6, 7, 8}).front().frame.view());
    particles.rigid_degrees = count_rigid_degrees(options, particles);
    set_temperature(particles, temperature, 3);
    return particles;
}

}  // namespace

TEST_CASE("dynamics that stay on a GPU are those that the host drives, in all ensembles") {
    if (!has_gpu()) return;
    DynamicsOptions options;
    options.time_step = 0.5;
    options.wants_virial = true;
    const test::MakeBed student = beds("builtin");
    constexpr double kTolerance = 1e-7;
    test::check_resident_follows_host(student, warm("water-box", options), options, 100, kTolerance);
    for (const Kind kind : {Kind::langevin, Kind::nose_hoover, Kind::rescaling}) {
        CAPTURE(static_cast<int>(kind));
        options.thermostat = {kind, 500, 50, 5};
        test::check_resident_follows_host(student, warm("water-box", options), options, 100, kTolerance);
        for (const int64_t steps : {20, 37, 60})
            test::check_resident_restarts(student, warm("water-box", options), options, steps);
    }
    for (const bool full_cell : {false, true}) {
        options.barostat = BarostatOptions{1000, 500, 4.57e-5, full_cell, 5};
        test::check_resident_follows_host(student, warm("water-box", options), options, 60, kTolerance);
        test::check_resident_restarts(student, warm("water-box", options), options, 33);
    }
    options = {};
    options.time_step = 0.5;
    options.remove_momentum_every = 10;
    test::check_resident_follows_host(student, warm("ethanol", options, 3000), options, 100, kTolerance);
    test::check_resident_restarts(beds("builtin", Precision::mixed), warm("water-box", options), options, 100);
    test::check_resident_follows_host(beds("builtin+zbl"), warm("water-box", options), options, 100, kTolerance);
}

TEST_CASE("dynamics that stay on a GPU are those that the host drives, with MACE") {
    if (!has_gpu()) return;
    const test::Golden* golden = test::find_golden("p03_mace_plain_l1");
    REQUIRE(golden);
    DynamicsOptions options;
    options.time_step = 0.25;
    options.wants_virial = true;
    int count = 0;
    for (const nlohmann::json& record : golden->facts.at("systems")) {
        const mace_test::System system = mace_test::read_system(record);
        if (system.numbers.size() < 8) continue;
        Particles particles(system.view());
        set_temperature(particles, 5000, 1);
        test::check_resident_follows_host(beds(golden->model_path), particles, options, 60, 1e-6);
        ++count;
    }
    CHECK(count > 0);
}

TEST_CASE("dynamics on a GPU stop where the host's would") {
    if (!has_gpu()) return;
    DynamicsOptions short_steps;
    short_steps.time_step = 0.25;
    Particles particles = warm("ethanol", {}, 3000);
    test::check_resident_can_be_stopped(beds("builtin"), particles);
    test::check_resident_stops(beds("builtin"), particles, {2000, 1e6}, 1e-7, short_steps);
    particles.velocities[0] += 1;  // an atom that flies away
    test::check_resident_stops(beds("builtin"), particles, {1e9, 3}, 1e-7, short_steps);
}

TEST_CASE("a session on a GPU may be used between two steps of dynamics") {
    if (!has_gpu()) return;
    DynamicsOptions options;
    options.time_step = 0.5;
    SessionOptions on_gpu;
    on_gpu.device = "cuda";
    Session session(load_model("builtin"), on_gpu), alone(load_model("builtin"), on_gpu);
    SessionForces forces(session), alone_forces(alone);
    const Particles water = warm("water-box", options), ethanol = warm("ethanol", options);
    MolecularDynamics dynamics(forces, water, options), undisturbed(alone_forces, water, options);
    dynamics.move_to_device(*session.device_stepper(), session.team());
    undisturbed.move_to_device(*alone.device_stepper(), alone.team());
    std::vector<double> other(ethanol.positions.size());
    for (int i = 0; i < 5; ++i) {
        dynamics.advance(4);
        undisturbed.advance(4);
        forces.compute(ethanol.view(), other.data(), nullptr);
    }
    CHECK_ALL_CLOSE(dynamics.particles().positions, undisturbed.particles().positions,
                    1e-6);  // neighbours were searched elsewhere, so sums round otherwise
    CHECK_ALL_CLOSE(dynamics.forces(), undisturbed.forces(), 1e-4);
}
