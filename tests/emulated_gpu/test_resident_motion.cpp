// SPDX-License-Identifier: MIT
// Dynamics that stay on the GPU, on the emulated one, with the kernels of PaiNN.
#include <doctest/doctest.h>

#include <algorithm>

#include "../unit/backend.h"
#include "../unit/resident_checks.h"
#include "../unit/trust_meters.h"
#include "painn/gpu/evaluator.h"
#include "random_painn.h"

using namespace mlff;
using Kind = ThermostatOptions::Kind;

namespace {

class EvaluatorBed : public test::ResidentBed, private ForceProvider {
public:
    explicit EvaluatorBed(int64_t memory_limit = 0) {
        BackendOptions options = test::backend(false);
        options.neighbor_skin = 0.3;
        options.gpu_memory_limit_bytes = memory_limit;
        TrustMeter meter = test::random_trust_meter(32, {1, 6}, 1.5, 2, 8);  // 8: not seen
        meter.alarm_error = 1e6;  // only novelty says which atoms are outside
        options.trust_meter = std::make_shared<const TrustMeter>(std::move(meter));
        evaluator_ = painn::gpu::make_gpu_evaluator(test::random_weights(7, 32, 1, 6, true), options);
    }
    ForceProvider& forces() override { return *this; }
    DeviceStepper& stepper() override { return *evaluator_->device_stepper(); }
    ThreadTeam& team() override { return team_; }

private:
    double compute(const SystemView& system, double* forces, double* virial) override {
        return compute(system, forces, virial, {});
    }
    double compute_with_trust(const SystemView& system, double* forces, double* virial, TrustReading& trust) override {
        std::vector<double> errors(static_cast<size_t>(system.atom_count)), novelties(errors.size());
        Outputs outputs;
        outputs.expected_errors = errors.data();
        outputs.novelties = novelties.data();
        const double energy = compute(system, forces, virial, outputs);
        trust = {*std::max_element(errors.begin(), errors.end()),
                 std::count_if(novelties.begin(), novelties.end(), [](double novelty) { return novelty > 1; })};
        return energy;
    }
    double compute(const SystemView& system, double* forces, double* virial, Outputs outputs) {
        double energy = 0;
        outputs.energy = &energy;
        outputs.forces = forces;
        outputs.virial = virial;
        evaluator_->evaluate(system, {}, outputs, team_);
        return energy;
    }
    int64_t search_count() const override { return evaluator_->neighbor_build_count(); }

    std::unique_ptr<Evaluator> evaluator_;
    ThreadTeam team_{1};
};
std::unique_ptr<test::ResidentBed> make_bed() { return std::make_unique<EvaluatorBed>(); }

Particles hot_atoms(bool is_periodic, const DynamicsOptions& options) {
    Particles particles(test::random_system(11, 9, 4.4, is_periodic).view());
    particles.rigid_degrees = count_rigid_degrees(options, particles);
    set_temperature(particles, 1500, 3);
    return particles;
}

}  // namespace

TEST_CASE("dynamics that stay on the GPU are those that the host drives, in all ensembles") {
    DynamicsOptions options;
    options.time_step = 0.4;
    options.wants_virial = true;
    constexpr double kTolerance = 1e-8;
    SUBCASE("constant energy, some atoms fixed") {
        Particles particles = hot_atoms(true, options);
        particles.is_fixed.assign(particles.atom_count(), 0);
        particles.is_fixed[2] = particles.is_fixed[5] = 1;
        test::check_resident_follows_host(make_bed, particles, options, 16, kTolerance);
    }
    SUBCASE("momentum and rotation removed") {
        options.remove_momentum_every = 4;
        Particles particles = hot_atoms(false, options);
        particles.velocities[0] += 0.05;
        test::check_resident_follows_host(make_bed, particles, options, 16, kTolerance);
    }
    for (const Kind kind : {Kind::langevin, Kind::nose_hoover, Kind::rescaling}) {
        options.thermostat = {kind, 900, 20, 5};
        SUBCASE(concat("thermostat ", static_cast<int>(kind)).c_str()) {
            test::check_resident_follows_host(make_bed, hot_atoms(true, options), options, 16, kTolerance);
        }
    }
    for (const int64_t interval : {1, 3}) {
        options.trust_every = interval;
        options.remove_momentum_every = 5;
        SUBCASE(concat("trust measured every ", interval, " steps").c_str()) {
            test::check_resident_follows_host(make_bed, hot_atoms(true, options), options, 16, kTolerance);
        }
        options.trust_every = options.remove_momentum_every = 0;
    }
    for (const bool full_cell : {false, true}) {
        options.thermostat = {full_cell ? Kind::langevin : Kind::rescaling, 900, 20, 5};
        options.barostat = BarostatOptions{1000, 2000, 1e-6, full_cell, 3};
        options.trust_every = full_cell ? 2 : 0;
        SUBCASE(full_cell ? "constant pressure, full cell" : "constant pressure") {
            test::check_resident_follows_host(make_bed, hot_atoms(true, options), options, 16, kTolerance);
        }
    }
}

TEST_CASE("dynamics on the GPU go on from a state bit for bit") {
    DynamicsOptions options;
    options.time_step = 0.4;
    for (const Kind kind : {Kind::none, Kind::langevin, Kind::nose_hoover, Kind::rescaling}) {
        CAPTURE(static_cast<int>(kind));
        options.thermostat = {kind, 900, 20, 5};
        test::check_resident_restarts(make_bed, hot_atoms(true, options), options, 6);
    }
}

TEST_CASE("dynamics on the GPU stop where the host's would") {
    DynamicsOptions short_steps;
    short_steps.time_step = 0.25;
    const Particles particles = hot_atoms(false, {});
    test::check_resident_can_be_stopped(make_bed, particles);
    Particles lost = particles, cold = particles;
    lost.velocities[0] += 0.3;  // an atom that flies away
    test::check_resident_stops(make_bed, lost, {1e9, 3}, 1e-8, short_steps);
    for (double& v : cold.velocities) v *= 0.2;
    test::check_resident_stops(make_bed, cold, {300, 1e6}, 1e-8, short_steps);
    // Constant pressure: the cells of the last frames; and a barostat that gives up in the middle of a step.
    DynamicsOptions squeezed = short_steps;
    squeezed.thermostat = {Kind::rescaling, 900, 1000, 5};
    squeezed.barostat = BarostatOptions{1e5, 500, 5e-7, true, 2};
    Particles crystal = hot_atoms(true, squeezed);
    for (double& v : crystal.velocities) v *= 0.2;
    test::check_resident_stops(make_bed, crystal, {300, 1e6}, 1e-8, squeezed);
    squeezed.barostat->pressure = 1e10;
    squeezed.barostat->every = 3;
    test::check_resident_stops(make_bed, crystal, {1e9, 1e6}, 1e-8, squeezed);
}

TEST_CASE("the memory of dynamics on the GPU counts towards the limit of the session") {
    DynamicsOptions options;
    options.time_step = 0.4;
    options.wants_virial = true;
    const Particles particles = hot_atoms(true, options);
    const auto fits = [&](int64_t limit, bool is_resident) {
        EvaluatorBed bed(limit);
        try {
            MolecularDynamics dynamics(bed.forces(), particles, options);
            if (is_resident) dynamics.move_to_device(bed.stepper(), bed.team());
            dynamics.advance(3);
            CHECK(std::isfinite(dynamics.total_energy()));
        } catch (const Error& error) {
            CHECK(error.status() == Status::memory);
            CHECK(std::string(error.what()).find("the limit of the session is ") != std::string::npos);
            return false;
        }
        return true;
    };
    const auto least_limit = [&](bool is_resident) {
        int64_t too_little = 1, enough = 1 << 26;
        REQUIRE(fits(enough, is_resident));
        while (enough - too_little > 64) {
            const int64_t middle = (too_little + enough) / 2;
            (fits(middle, is_resident) ? enough : too_little) = middle;
        }
        return enough;
    };
    const int64_t by_host = least_limit(false), by_device = least_limit(true);
    const auto motion = static_cast<int64_t>(particles.atom_count() * (3 * 3 + 2 + 5 * 9) * sizeof(double));
    CAPTURE(by_host);
    CAPTURE(by_device);
    CHECK(std::abs(by_device - by_host - motion) <= 128);

    // What a motion held is free again for the next one.
    EvaluatorBed bed(by_device);
    for (int run = 0; run < 3; ++run) {
        MolecularDynamics dynamics(bed.forces(), particles, options);
        dynamics.move_to_device(bed.stepper(), bed.team());
        dynamics.advance(2);
    }
}
