// SPDX-License-Identifier: MIT
// Dynamics that stay on the GPU against dynamics that the host drives with the same evaluator. For a GPU and for the
// emulated one.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <vector>

#include "close.h"
#include "core/error.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/units.h"

namespace mlff::test {

// An evaluator on a GPU, of its own for each run.
class ResidentBed {
public:
    virtual ~ResidentBed() = default;
    virtual ForceProvider& forces() = 0;
    virtual DeviceStepper& stepper() = 0;
    virtual ThreadTeam& team() = 0;
};
using MakeBed = std::function<std::unique_ptr<ResidentBed>()>;

inline std::vector<double> flat(const Mat3& matrix) { return {matrix[0].data(), matrix[0].data() + 9}; }

inline void check_same(const MolecularDynamics& found, const MolecularDynamics& expected, double tolerance) {
    REQUIRE(found.step_count() == expected.step_count());
    CAPTURE(found.step_count());
    CHECK_ALL_CLOSE(found.particles().positions, expected.particles().positions, tolerance);
    CHECK_ALL_CLOSE(found.particles().velocities, expected.particles().velocities, tolerance);
    CHECK_ALL_CLOSE(found.forces(), expected.forces(), 10 * tolerance);
    CHECK_ALL_CLOSE(flat(found.cell()), flat(expected.cell()), tolerance);
    CHECK_ALL_CLOSE(flat(found.virial()), flat(expected.virial()), 100 * tolerance);
    const double energies[] = {found.potential_energy(), found.kinetic_energy(), found.heat(),
                               found.temperature() * kBoltzmann};
    const double expected_energies[] = {expected.potential_energy(), expected.kinetic_energy(), expected.heat(),
                                        expected.temperature() * kBoltzmann};
    CHECK_ALL_CLOSE(energies, expected_energies, 10 * tolerance);
    CHECK(found.trust_step() == expected.trust_step());
    CHECK(is_close(found.trust().max_expected_error, expected.trust().max_expected_error, 10 * tolerance));
    CHECK(found.trust().outside_count == expected.trust().outside_count);
    CHECK(found.kinetic_energy() == doctest::Approx(found.particles().kinetic_energy()).epsilon(1e-12));
}

inline void check_resident_follows_host(const MakeBed& make_bed, const Particles& start, const DynamicsOptions& options,
                                        int64_t step_count, double tolerance) {
    const std::unique_ptr<ResidentBed> host_bed = make_bed(), bed = make_bed();
    MolecularDynamics host(host_bed->forces(), start, options), resident(bed->forces(), start, options);
    const int64_t searches = bed->forces().search_count();
    resident.move_to_device(bed->stepper(), bed->team());
    check_same(resident, host, tolerance);
    for (int chunk = 0; chunk < 4; ++chunk) {
        host.advance(step_count / 4);
        resident.advance(step_count / 4);
        check_same(resident, host, tolerance);
    }
    CHECK(bed->forces().search_count() > searches);  // else nothing was shown of steps that halt
}

// Bit for bit: a run of 2n steps is one of n steps, its state, and n steps of another process.
inline void check_resident_restarts(const MakeBed& make_bed, const Particles& start, const DynamicsOptions& options,
                                    int64_t step_count) {
    const std::unique_ptr<ResidentBed> bed = make_bed(), other_bed = make_bed();
    MolecularDynamics whole(bed->forces(), start, options);
    whole.move_to_device(bed->stepper(), bed->team());
    whole.advance(step_count);
    const DynamicsState state = whole.state();
    whole.advance(step_count);
    MolecularDynamics second(other_bed->forces(), state, options);
    second.move_to_device(other_bed->stepper(), other_bed->team());
    second.advance(step_count);
    CHECK(second.particles().positions == whole.particles().positions);
    CHECK(second.particles().velocities == whole.particles().velocities);
    CHECK(second.forces() == whole.forces());
    CHECK(second.cell() == whole.cell());
    CHECK(second.virial() == whole.virial());
    CHECK(second.potential_energy() == whole.potential_energy());
    CHECK(second.heat() == whole.heat());
    CHECK(second.state().thermostat == whole.state().thermostat);
}

// A run that breaks: the same words and the same last frames.
inline void check_resident_stops(const MakeBed& make_bed, Particles start, const StabilityLimits& limits,
                                 double tolerance, const DynamicsOptions& options = {}) {
    std::vector<std::string> messages;
    std::vector<RecentSnapshots> recents;
    std::vector<int64_t> steps;
    for (const bool is_resident : {false, true}) {
        const std::unique_ptr<ResidentBed> bed = make_bed();
        MolecularDynamics dynamics(bed->forces(), start, options);
        dynamics.watch(limits);
        if (is_resident) dynamics.move_to_device(bed->stepper(), bed->team());
        try {
            dynamics.advance(200);
            messages.push_back("did not stop");
        } catch (const Error& error) {
            CHECK(error.status() == Status::system);
            messages.push_back(error.what());
        }
        recents.push_back(dynamics.recent());
        if (is_resident) CHECK_THROWS_AS(dynamics.step(), Error);
        steps.push_back(dynamics.step_count());
    }
    CHECK(messages[0].find("at step") != std::string::npos);
    CHECK(messages[1].substr(0, messages[1].find(" is ")) == messages[0].substr(0, messages[0].find(" is ")));
    CHECK(steps[1] == steps[0]);
    REQUIRE(recents[1].size() == recents[0].size());
    REQUIRE(recents[0].size() > 0);
    for (size_t i = 0; i < recents[0].size(); ++i) {
        const Snapshot &found = recents[1][i], &expected = recents[0][i];
        CHECK(found.step == expected.step);
        CHECK_ALL_CLOSE(flat(found.cell), flat(expected.cell), tolerance);
        CHECK_ALL_CLOSE(found.positions, expected.positions, tolerance);
        CHECK_ALL_CLOSE(found.velocities, expected.velocities, tolerance);
        CHECK_ALL_CLOSE(found.forces, expected.forces, 10 * tolerance);
        CHECK(std::abs(found.potential_energy - expected.potential_energy) <= 10 * tolerance);
        CHECK(std::abs(found.temperature - expected.temperature) <= 1e-6 * expected.temperature);
    }
}

inline void check_resident_can_be_stopped(const MakeBed& make_bed, const Particles& start) {
    const std::unique_ptr<ResidentBed> bed = make_bed();
    MolecularDynamics dynamics(bed->forces(), start, DynamicsOptions{});
    dynamics.move_to_device(bed->stepper(), bed->team());
    int calls = 0;
    dynamics.advance(50, [&] {
        CHECK(dynamics.step_count() == ++calls);
        return calls < 7;
    });
    CHECK(dynamics.step_count() >= 7);  // what was launched is finished
    CHECK(dynamics.step_count() <= 9);
    dynamics.step();
    CHECK(dynamics.step_count() == calls + 1);
}

}  // namespace mlff::test
