// SPDX-License-Identifier: MIT
// The trust meter on GPUs against the CPU, with the embedded student; and in dynamics. Tests that need a GPU pass
// without one, unless MLFF_REQUIRE_GPU is set.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#ifdef MLFF_HAS_CUDA
#include <cuda_runtime.h>
#endif

#include "close.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/session_forces.h"
#include "test_gpu_support.h"
#include "tools/validate/systems.h"
#include "trust/formulas.h"
#include "trust_meters.h"

using namespace mlff;

namespace {

using Numbers = std::vector<double>;

Session session_on(const std::shared_ptr<const Model>& model, const std::string& device,
                   Precision precision = Precision::fp64) {
    SessionOptions options;
    options.device = device;
    options.precision = precision;
    options.thread_count = 2;
    options.measures_trust_on_gpu = true;
    return Session(model, options);
}

Particles atoms_of(const std::string& name) {
    return Particles(validate::chosen_systems({name}, {1, 6, 7, 8}).front().frame.view());
}

struct Measured {
    Numbers expected_errors, novelties, forces;

    explicit Measured(size_t atoms) : expected_errors(atoms, NAN), novelties(atoms, NAN), forces(3 * atoms, NAN) {}
    Results results() {
        Results results;
        results.outputs.expected_errors = expected_errors.data();
        results.outputs.novelties = novelties.data();
        results.outputs.forces = forces.data();
        return results;
    }
};

Measured measure(Session& session, const SystemView& system) {
    Measured measured(static_cast<size_t>(system.atom_count));
    const Results results = measured.results();
    session.evaluate({&system, 1}, {&results, 1});
    return measured;
}

Numbers ratios(const Numbers& found, const Numbers& expected) {
    Numbers all(found.size());
    for (size_t i = 0; i < found.size(); ++i) all[i] = found[i] / expected.at(i);
    return all;
}
void check_same(const Measured& found, const Measured& expected, double tolerance) {
    const Numbers ones(expected.novelties.size(), 1.0);
    CHECK_ALL_CLOSE(ratios(found.expected_errors, expected.expected_errors), ones, tolerance);
    CHECK_ALL_CLOSE(ratios(found.novelties, expected.novelties), ones, tolerance);
}

// With a meter for which about half of the atoms of water are like those of training, and nitrogen is not seen.
std::shared_ptr<const Model> measured_model(const std::string& name = "builtin") {
    const auto model = std::const_pointer_cast<Model>(load_model(name));
    const Particles water = atoms_of("water-box");
    const int width = model->summary().descriptor_count;
    Numbers descriptors(static_cast<size_t>(width) * water.atom_count());
    const SystemView view = water.view();
    Results results;
    results.outputs.descriptors = descriptors.data();
    Session plain = session_on(model, "cpu");
    plain.evaluate({&view, 1}, {&results, 1});
    double squares = 0;
    for (const double number : descriptors) squares += number * number;
    TrustMeter meter = test::random_trust_meter(
        width, {1, 6, 8}, std::sqrt(squares / static_cast<double>(descriptors.size())), 3, std::min(width, 20));
    meter.alarm_error = 1e6;  // only novelty says which atoms are outside
    std::fill(meter.limits.begin(), meter.limits.end(), 1.0);
    model->set_trust_meter(std::make_shared<const TrustMeter>(meter));
    Session first = session_on(model, "cpu");
    const Measured measured = measure(first, view);
    for (size_t e = 0; e < meter.elements.size(); ++e) {
        Numbers novelties;
        for (size_t i = 0; i < water.atom_count(); ++i)
            if (water.atomic_numbers[i] == meter.elements[e]) novelties.push_back(measured.novelties[i]);
        if (novelties.size() < 3) continue;
        std::sort(novelties.begin(), novelties.end());
        size_t at = novelties.size() / 3;  // the widest gap, so that rounding moves no atom to the other side
        for (size_t i = at; i + 1 < novelties.size() && i < 2 * novelties.size() / 3; ++i)
            if (novelties[i + 1] - novelties[i] > novelties[at + 1] - novelties[at]) at = i;
        meter.limits[e] = std::pow((novelties[at] + novelties[at + 1]) / 2, 2);
    }
    model->set_trust_meter(std::make_shared<const TrustMeter>(meter));
    return model;
}

DynamicsOptions measured_steps() {
    DynamicsOptions options;
    options.time_step = 0.5;
    options.trust_every = 4;
    return options;
}

Particles warm_water() {
    Particles particles = atoms_of("water-box");
    particles.rigid_degrees = 3;
    set_temperature(particles, 900, 3);
    return particles;
}

}  // namespace

TEST_CASE("dynamics measure trust in steps that are multiples of an interval") {
    const auto model = measured_model();
    Session session = session_on(model, "cpu"), other = session_on(model, "cpu");
    SessionForces forces(session);
    MolecularDynamics dynamics(forces, warm_water(), measured_steps());
    for (int step = 0; step <= 9; ++step) {
        if (step > 0) dynamics.step();
        CHECK(dynamics.trust_step() == step / 4 * 4);
        if (step % 4 != 0) continue;
        const Measured measured = measure(other, dynamics.particles().view());
        const Numbers& errors = measured.expected_errors;
        CHECK(dynamics.trust().max_expected_error ==
              doctest::Approx(*std::max_element(errors.begin(), errors.end())).epsilon(1e-9));
        const auto outside = std::count_if(measured.novelties.begin(), measured.novelties.end(),
                                           [](double novelty) { return novelty > 1; });
        CHECK(dynamics.trust().outside_count == outside);
        CHECK(outside > 0);
    }
    DynamicsOptions options = measured_steps();
    options.trust_every = 0;
    MolecularDynamics unmeasured(forces, warm_water(), options);
    CHECK(unmeasured.trust_step() == -1);
    options.trust_every = -1;
    CHECK_THROWS_WITH_AS(MolecularDynamics(forces, warm_water(), options),
                         doctest::Contains("trust cannot be measured every -1 steps"), Error);
    const auto no_meter_model = std::const_pointer_cast<Model>(load_model("builtin"));
    no_meter_model->set_trust_meter(nullptr);
    Session without = session_on(no_meter_model, "cpu");
    SessionForces no_meter(without);
    CHECK_THROWS_WITH_AS(MolecularDynamics(no_meter, warm_water(), measured_steps()),
                         doctest::Contains("no trust meter"), Error);
}

TEST_CASE("on a GPU: trust is that of the CPU") {
    if (!has_gpu()) return;
    for (const std::string name : {"builtin", "builtin+zbl"}) {
        CAPTURE(name);
        const auto model = measured_model(name);
        Session on_cpu = session_on(model, "cpu");
        std::vector<Particles> systems;
        for (const char* each : {"water-box", "ethanol"}) systems.push_back(atoms_of(each));
        Particles with_nitrogen = systems[1];
        with_nitrogen.atomic_numbers[1] = 7;  // not seen
        systems.push_back(with_nitrogen);
        std::vector<Measured> expected;
        for (const Particles& system : systems) expected.push_back(measure(on_cpu, system.view()));
        CHECK(std::count(expected[2].novelties.begin(), expected[2].novelties.end(), trust::kUnseenNovelty) == 1);
        for (const Precision precision : {Precision::fp64, Precision::mixed}) {
            const double tolerance = precision == Precision::fp64 ? 1e-5 : 2e-3;
            Session session = session_on(model, "cuda", precision), plain = session_on(model, "cuda", precision);
            for (int repeat = 0; repeat < 3; ++repeat)  // the third is a graph
                for (size_t i = 0; i < systems.size(); ++i) {
                    const Measured found = measure(session, systems[i].view()),
                                   again = measure(session, systems[i].view());
                    check_same(found, expected[i], tolerance);
                    CHECK(again.expected_errors == found.expected_errors);  // bit for bit
                    CHECK(again.novelties == found.novelties);
                    Numbers forces(3 * systems[i].atom_count(), NAN);
                    Results results;
                    results.outputs.forces = forces.data();
                    const SystemView view = systems[i].view();
                    plain.evaluate({&view, 1}, {&results, 1});
                    CHECK_ALL_CLOSE(found.forces, forces, precision == Precision::fp64 ? 1e-9 : 1e-4);
                }

            std::vector<SystemView> views;
            std::vector<Measured> found;
            std::vector<Results> results;
            for (const size_t i : {1, 2, 1, 2}) {  // molecules find their neighbours on the GPU
                views.push_back(systems[i].view());
                found.emplace_back(systems[i].atom_count());
            }
            for (Measured& each : found) results.push_back(each.results());
            session.evaluate(views, results);
            for (size_t i = 0; i < found.size(); ++i) check_same(found[i], expected[1 + i % 2], tolerance);

            views = {systems[0].view(), systems[0].view()};  // periodic systems bring edges of the host
            found = {Measured(systems[0].atom_count()), Measured(systems[0].atom_count())};
            results = {found[0].results(), found[1].results()};
            results[1].outputs.expected_errors = nullptr;
            session.evaluate(views, results);
            found[1].expected_errors = found[0].expected_errors;
            for (const Measured& each : found) check_same(each, expected[0], tolerance);
        }
    }
}

#ifdef MLFF_HAS_CUDA
TEST_CASE("on a GPU: trust in device memory") {
    if (!has_gpu()) return;
    const auto model = measured_model();
    Session on_host = session_on(model, "cuda"), on_device = session_on(model, "cuda");
    const Particles water = atoms_of("water-box");
    const size_t atoms = water.atom_count();
    double* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, 5 * atoms * sizeof(double)) == cudaSuccess);
    REQUIRE(cudaMemcpy(memory, water.positions.data(), 3 * atoms * sizeof(double), cudaMemcpyHostToDevice) ==
            cudaSuccess);
    SystemView view = water.view();
    for (int repeat = 0; repeat < 3; ++repeat) {
        const Measured expected = measure(on_host, water.view());
        view.positions = memory;
        Results results;
        results.outputs.expected_errors = memory + 3 * atoms;
        results.outputs.novelties = memory + 4 * atoms;
        on_device.evaluate_on_device(view, results, nullptr);
        Numbers found(2 * atoms);
        REQUIRE(cudaMemcpy(found.data(), memory + 3 * atoms, 2 * atoms * sizeof(double), cudaMemcpyDeviceToHost) ==
                cudaSuccess);
        Numbers both = expected.expected_errors;
        both.insert(both.end(), expected.novelties.begin(), expected.novelties.end());
        CHECK(found == both);
    }
    cudaFree(memory);
}
#endif

TEST_CASE("on a GPU: dynamics that stay there measure the same trust as those that the host drives") {
    if (!has_gpu()) return;
    const auto model = measured_model();
    for (const Precision precision : {Precision::fp64, Precision::mixed}) {
        Session host_session = session_on(model, "cuda", precision), session = session_on(model, "cuda", precision),
                unmeasured_session = session_on(model, "cuda", precision);
        SessionForces host_forces(host_session), forces(session), unmeasured_forces(unmeasured_session);
        DynamicsOptions never = measured_steps();
        never.trust_every = 0;
        MolecularDynamics host(host_forces, warm_water(), measured_steps()),
            resident(forces, warm_water(), measured_steps()), unmeasured(unmeasured_forces, warm_water(), never);
        resident.move_to_device(*session.device_stepper(), session.team());
        unmeasured.move_to_device(*unmeasured_session.device_stepper(), unmeasured_session.team());
        const double tolerance = precision == Precision::fp64 ? 1e-5 : 1e-2;
        CHECK(resident.trust_step() == 0);
        std::vector<int64_t> steps;
        Numbers found, expected;
        resident.advance(60, [&] {
            if (resident.trust_step() == resident.step_count()) {
                steps.push_back(resident.trust_step());
                found.push_back(resident.trust().max_expected_error);
                found.push_back(static_cast<double>(resident.trust().outside_count));
            }
            return true;
        });
        for (int step = 1; step <= 60; ++step) {
            host.step();
            if (step % 4 != 0) continue;
            CHECK(host.trust_step() == step);
            expected.push_back(host.trust().max_expected_error);
            expected.push_back(static_cast<double>(host.trust().outside_count));
        }
        CHECK(steps.size() == 15);
        CHECK(steps.back() == 60);
        REQUIRE(found.size() == expected.size());
        for (size_t i = 0; i < found.size(); i += 2) {
            CHECK(std::abs(found[i] / expected[i] - 1) <= tolerance);
            CHECK(std::abs(found[i + 1] - expected[i + 1]) <= (precision == Precision::fp64 ? 0 : 3));
        }
        unmeasured.advance(60);
        CHECK_ALL_CLOSE(resident.particles().positions, unmeasured.particles().positions,
                        precision == Precision::fp64 ? 1e-8 : 1e-3);
    }
}
