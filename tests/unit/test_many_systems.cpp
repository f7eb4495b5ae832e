// SPDX-License-Identifier: MIT
// Many systems at once give each what it has alone, bit for bit on the CPU.
#include <doctest/doctest.h>

#include <filesystem>

#include "../tags.h"
#include "close.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "dynamics/many_dynamics.h"
#include "dynamics/relaxation_batch.h"
#include "dynamics/replica_exchange.h"
#include "dynamics/restart.h"
#include "dynamics/session_forces.h"
#include "dynamics/units.h"
#include "engine/load_model.h"
#include "formats/extxyz.h"
#include "test_dynamics_support.h"

using namespace mlff;
using namespace mlff::test;

namespace {

SessionOptions cpu_options(int threads) {
    SessionOptions options;
    options.device = "cpu";
    options.thread_count = threads;
    return options;
}

std::vector<Frame> molecules() { return read_extxyz(MLFF_TEST_DATA_DIR "/student_frames.xyz"); }

std::vector<Relaxation> relaxations_of(const std::vector<Frame>& frames, int64_t step_limit) {
    RelaxationOptions options;
    options.step_limit = step_limit;
    std::vector<Relaxation> relaxations;
    for (const Frame& frame : frames) relaxations.emplace_back(Particles(frame.view()), options);
    return relaxations;
}

void check_same(const Relaxation& found, const Relaxation& expected) {
    CHECK(found.particles().positions == expected.particles().positions);
    CHECK(found.forces() == expected.forces());
    CHECK(found.energy() == expected.energy());
    CHECK(found.move_count() == expected.move_count());
}

// Pulls atoms to the origin with 1 eV/angstrom^2, and knows no system of three atoms.
class SpringBatch : public BatchForces {
public:
    explicit SpringBatch(int threads = 2) : team_(threads) {}
    void compute(std::span<const SystemView> systems, std::span<BatchAnswer* const> answers) override {
        sizes.push_back(systems.size());
        for (size_t i = 0; i < systems.size(); ++i) {
            BatchAnswer& answer = *answers[i];
            answer.error.reset();
            if (systems[i].atom_count == 3) answer.error = Error(Status::system, "three is too many");
            const std::span positions(systems[i].positions, static_cast<size_t>(3 * systems[i].atom_count));
            answer.energy = 0;
            answer.forces.clear();
            for (const double x : positions) {
                answer.energy += 0.5 * x * x;
                answer.forces.push_back(-x);
            }
        }
    }
    ThreadTeam& team() override { return team_; }

    std::vector<size_t> sizes;  // of batches

private:
    ThreadTeam team_;
};

}  // namespace

TEST_CASE("systems over threads have the bits that they have alone" * test::kSlowUnderSanitizers) {
    const std::vector<Frame> frames = molecules();
    const auto model = load_model("builtin");
    Session together(model, cpu_options(3)), alone(model, cpu_options(1));
    SessionBatch forces(together, model, cpu_options(3));
    CHECK(forces.most_atoms() == 3 * 256);
    std::vector<SystemView> systems;
    std::vector<BatchAnswer> answers(frames.size());
    std::vector<BatchAnswer*> places;
    for (size_t i = 0; i < frames.size(); ++i) {
        systems.push_back(frames[i].view());
        places.push_back(&answers[i]);
    }
    forces.compute(systems, places);
    for (size_t i = 0; i < frames.size(); ++i) {
        double energy = 0;
        std::vector<double> expected(frames[i].positions.size());
        Mat3 virial{};
        Results results;
        results.outputs.energy = &energy;
        results.outputs.forces = expected.data();
        results.outputs.virial = virial[0].data();
        alone.evaluate({&systems[i], 1}, {&results, 1});
        CHECK(answers[i].energy == energy);
        CHECK(answers[i].forces == expected);
        CHECK(answers[i].virial == virial);
    }
}

TEST_CASE("a system that cannot be evaluated leaves the others their results") {
    const auto model = load_model("builtin");
    Session session(model, cpu_options(2));
    SessionBatch forces(session, model, cpu_options(2));
    std::vector<Frame> frames = molecules();
    frames.resize(3);
    frames[1].atomic_numbers[0] = 92;
    std::vector<SystemView> systems = {frames[0].view(), frames[1].view(), frames[2].view()};
    std::array<BatchAnswer, 3> answers;
    const std::array<BatchAnswer*, 3> places = {&answers[0], &answers[1], &answers[2]};
    forces.compute(systems, places);
    CHECK_FALSE(answers[0].error);
    REQUIRE(answers[1].error);
    CHECK(std::string(answers[1].error->what()).find("atom 0 is U") == 0);
    CHECK_FALSE(answers[2].error);
    CHECK(answers[2].energy < 0);
}

TEST_CASE("systems as one batch have the results that they have alone, and errors of their own" *
          test::kSlowUnderSanitizers) {
    const auto model = load_model("builtin");
    std::vector<SessionOptions> devices = {cpu_options(2)};
    if (model->usable_gpus().count > 0) {
        devices.push_back(cpu_options(2));
        devices.back().device = "cuda";
    }
    for (const SessionOptions& options : devices) {
        CAPTURE(options.device);
        Session session(model, options);
        SessionBatch one_batch(session, model, options, SessionBatch::Way::as_one_batch);
        SessionBatch alone(session, model, options, SessionBatch::Way::alone);
        std::vector<Frame> frames = molecules();
        frames.resize(7);
        for (const bool has_error : {false, true}) {
            if (has_error) std::copy_n(frames[4].positions.begin(), 3, frames[4].positions.begin() + 3);
            std::vector<SystemView> systems;
            std::vector<BatchAnswer> answers(frames.size()), expected(frames.size());
            std::vector<BatchAnswer*> places, expected_places;
            for (size_t i = 0; i < frames.size(); ++i) {
                systems.push_back(frames[i].view());
                places.push_back(&answers[i]);
                expected_places.push_back(&expected[i]);
            }
            one_batch.compute(systems, places);
            alone.compute(systems, expected_places);
            for (size_t i = 0; i < frames.size(); ++i) {
                CHECK(answers[i].error.has_value() == (has_error && i == 4));
                CHECK(expected[i].error.has_value() == (has_error && i == 4));
                if (answers[i].error) continue;
                CHECK(std::abs(answers[i].energy - expected[i].energy) < 1e-3);
                CHECK_ALL_CLOSE(answers[i].forces, expected[i].forces, 1e-3);
            }
            if (!has_error) continue;
            CHECK(std::string(answers[4].error->what()).find("at the same place") != std::string::npos);
        }
        // Passengers and newcomers change the batch, not where a structure ends.
        std::vector<Relaxation> relaxations = relaxations_of({frames[2], frames[3], frames[5]}, 400);
        std::vector<Relaxation> together = relaxations_of({frames[2], frames[3], frames[5]}, 400);
        for (Relaxation& relaxation : relaxations) relax_together(alone, {&relaxation, 1});
        RelaxationBatch batch(one_batch, 0.5);
        for (size_t i = 0; i < together.size(); ++i) batch.add(static_cast<int64_t>(i), std::move(together[i]));
        while (!batch.is_empty())
            for (const RelaxationBatch::Member& member : batch.step()) {
                CHECK(member.relaxation.is_converged());
                CHECK(std::abs(member.relaxation.energy() - relaxations[static_cast<size_t>(member.id)].energy()) <
                      2e-3);
            }
    }
}

TEST_CASE("a relaxation has the same bits in any batch") {
    std::vector<Frame> frames = molecules();
    frames.resize(6);
    const auto model = load_model("builtin");
    Session session(model, cpu_options(2));
    SessionBatch forces(session, model, cpu_options(2));
    std::vector<Relaxation> alone = relaxations_of(frames, 12);
    for (Relaxation& relaxation : alone) relax_together(forces, {&relaxation, 1});
    std::vector<Relaxation> together = relaxations_of(frames, 12);
    relax_together(forces, together);
    for (size_t i = 0; i < frames.size(); ++i) check_same(together[i], alone[i]);
}

TEST_CASE("what is finished leaves the batch, and others take its place") {
    RelaxationOptions options;
    options.largest_force = 1e-3;
    SpringBatch springs;
    RelaxationBatch batch(springs);
    batch.add(0, Relaxation(argon_atoms({5, 0, 0, 1, 2, 0}), options));
    batch.add(1, Relaxation(argon_atoms({0, 0, 0}), options));
    CHECK(batch.atom_count() == 3);
    std::vector<RelaxationBatch::Member> left = batch.step();
    REQUIRE(left.size() == 1);
    CHECK(left[0].id == 1);
    CHECK(left[0].relaxation.is_converged());
    batch.add(2, Relaxation(argon_atoms({3, 0, 0, 0, 0, 1, 0, 2, 0}), options));
    left = batch.step();
    REQUIRE(left.size() == 1);
    CHECK(left[0].id == 2);
    REQUIRE(left[0].error);
    CHECK(std::string(left[0].error->what()) == "three is too many");
    while (!batch.is_empty()) left = batch.step();
    REQUIRE(left.size() == 1);
    CHECK(left[0].id == 0);
    CHECK(left[0].relaxation.is_converged());
    Relaxation alone(argon_atoms({5, 0, 0, 1, 2, 0}), options);
    relax_together(springs, {&alone, 1});
    check_same(left[0].relaxation, alone);
}

TEST_CASE("a batch that is to stay the same keeps what is finished as passengers") {
    RelaxationOptions options;
    options.largest_force = 1e-3;
    SpringBatch springs;
    RelaxationBatch batch(springs, 0.5);
    batch.add(0, Relaxation(argon_atoms({0, 0, 0}), options));
    batch.add(1, Relaxation(argon_atoms({5, 0, 0}), options));
    batch.add(2, Relaxation(argon_atoms({-2, 0, 4, 1, 1, 7}), options));
    std::vector<RelaxationBatch::Member> left;
    while (left.empty()) left = batch.step();
    CHECK(springs.sizes == std::vector<size_t>(springs.sizes.size(), 3));
    CHECK(left.size() >= 2);
    for (const auto& member : left) CHECK(member.relaxation.is_converged());
    batch.drop_after(0);
    CHECK(batch.is_empty());
}

namespace {

DynamicsStart start_of(Particles particles, ThermostatOptions::Kind bath, double temperature, uint64_t seed) {
    DynamicsStart start;
    start.options.time_step = 0.5;
    start.options.thermostat = {bath, temperature, 50, seed};
    particles.rigid_degrees = count_rigid_degrees(start.options, particles);
    set_temperature(particles, temperature, seed);
    start.particles = std::move(particles);
    return start;
}

std::vector<DynamicsStart> molecule_starts(size_t count) {
    const std::vector<Frame> frames = molecules();
    std::vector<DynamicsStart> starts;
    for (size_t i = 0; i < count; ++i)
        starts.push_back(start_of(Particles(frames[i].view()),
                                  i % 2 == 0 ? ThermostatOptions::Kind::langevin : ThermostatOptions::Kind::none,
                                  200 + 50 * static_cast<double>(i), i));
    return starts;
}

void check_same(const MolecularDynamics& found, const MolecularDynamics& expected) {
    CHECK(found.step_count() == expected.step_count());
    CHECK(found.particles().positions == expected.particles().positions);
    CHECK(found.particles().velocities == expected.particles().velocities);
    CHECK(found.forces() == expected.forces());
    CHECK(found.potential_energy() == expected.potential_energy());
    CHECK(found.conserved_energy() == expected.conserved_energy());
}

}  // namespace

TEST_CASE("dynamics of many systems have the bits of each alone") {
    const auto model = load_model("builtin");
    Session session(model, cpu_options(2));
    SessionBatch forces(session, model, cpu_options(2));
    const std::vector<DynamicsStart> starts = molecule_starts(4);
    ManyDynamics many(forces, starts, {});
    for (int step = 0; step < 6; ++step) many.step();
    CHECK(many.count_going_on() == 4);
    for (size_t i = 0; i < starts.size(); ++i) {
        Session own(model, cpu_options(1));
        SessionForces own_forces(own);
        MolecularDynamics alone(own_forces, starts[i].particles, starts[i].options);
        alone.advance(6);
        check_same(*many.at(i), alone);
    }
}

TEST_CASE("a system that breaks leaves, and the others go on as before") {
    SpringBatch springs;
    const auto bath = ThermostatOptions::Kind::langevin;
    std::vector<DynamicsStart> starts;
    starts.push_back(start_of(argon_atoms({0.1, 0, 0, 0, 0.2, 0}), bath, 20, 1));
    starts.push_back(start_of(argon_atoms({0, 0, 0, 1, 0, 0, 2, 0, 0}), bath, 20, 2));  // unknown to the springs
    starts.push_back(start_of(argon_atoms({9, 0, 0, 0, 9, 0}), bath, 20, 3));  // far out: hot when it comes back
    starts.push_back(start_of(argon_atoms({0, 0, 0.3}), bath, 20, 4));
    for (DynamicsStart& start : starts) start.options.time_step = 5;
    StabilityLimits limits;
    limits.temperature = 1000;
    ManyDynamics many(springs, starts, limits);
    CHECK(many.ended(1) == "three is too many");
    CHECK_FALSE(many.at(1));
    for (int step = 0; step < 60; ++step) many.step();
    CHECK(many.ended(2).find("above the limit of 1000 K") != std::string::npos);
    REQUIRE(many.at(2));
    CHECK(many.at(2)->step_count() < 60);
    CHECK(many.at(2)->recent().size() > 0);
    CHECK(many.count_going_on() == 2);
    for (const size_t i : {size_t{0}, size_t{3}}) {
        ManyDynamics alone(springs, {starts[i]}, limits);
        for (int step = 0; step < 60; ++step) alone.step();
        check_same(*many.at(i), *alone.at(0));
    }
}

TEST_CASE("a restart file of many systems continues all of them bit for bit") {
    const std::string path = (std::filesystem::temp_directory_path() / "mlff_test_many.restart").string();
    const auto model = load_model("builtin");
    Session session(model, cpu_options(2));
    SessionBatch forces(session, model, cpu_options(2));
    std::vector<DynamicsStart> starts = molecule_starts(3);
    starts[1].ended = "it broke before";
    ManyDynamics whole(forces, starts, {}), first(forces, starts, {});
    for (int step = 0; step < 8; ++step) whole.step();
    for (int step = 0; step < 5; ++step) first.step();
    ManyRestart restart;
    restart.run = {{"step", "5"}};
    for (size_t i = 0; i < starts.size(); ++i) {
        restart.ended.push_back(first.ended(i));
        restart.members.push_back(first.at(i) ? Restart{first.at(i)->state(), {{"seed", std::to_string(i)}}}
                                              : Restart{});
    }
    write_many_restart(path, restart);
    const ManyRestart found = read_many_restart(path);
    CHECK(found.run == restart.run);
    CHECK(found.ended == restart.ended);
    REQUIRE(found.members.size() == 3);
    CHECK(found.members[2].run.at("seed") == "2");
    for (size_t i = 0; i < starts.size(); ++i)
        if (found.ended[i].empty()) starts[i].state = found.members[i].state;
    ManyDynamics second(forces, starts, {});
    for (int step = 5; step < 8; ++step) second.step();
    for (const size_t i : {size_t{0}, size_t{2}}) check_same(*second.at(i), *whole.at(i));
    CHECK_FALSE(second.at(1));

    Safetensors contents;
    contents.metadata = {{"format", "mlff-many-dynamics"}, {"version", "1"}, {"count", "1"}, {"1/step", "5"}};
    CHECK_THROWS_WITH_AS(parse_many_restart(contents, "r"),
                         "r: '1/step' belongs to none of the 1 systems of the restart file", Error);
    contents.metadata["count"] = "1000000";
    CHECK_THROWS_WITH_AS(parse_many_restart(contents, "r"), "r: systems are missing in the restart file", Error);
    contents.metadata["format"] = "mlff-dynamics";
    CHECK_THROWS_AS(parse_many_restart(contents, "r"), Error);
    std::filesystem::remove(path);
}

TEST_CASE("a restart file has at most as many systems as can be read") {
    const std::string path = (std::filesystem::temp_directory_path() / "mlff_test_most.restart").string();
    SpringBatch springs;
    ManyDynamics one(springs, {start_of(argon_atoms({0, 0, 0.5}), ThermostatOptions::Kind::none, 20, 1)}, {});
    ManyRestart restart;
    restart.members.push_back(Restart{one.at(0)->state(), {}});
    restart.ended.resize(1);
    write_many_restart(path, restart);
    // A safetensors file has at most 100,000 tensors.
    const auto file = MappedFile::open(path);
    const size_t tensors = read_safetensors(file->bytes(), path).tensors.size();
    CHECK(tensors * kMostSystemsOfRestart <= 100'000);
    CHECK(tensors * (kMostSystemsOfRestart + 1) > 100'000);
    restart.members.resize(kMostSystemsOfRestart + 1);
    restart.ended.resize(kMostSystemsOfRestart + 1);
    CHECK_THROWS_WITH_AS(write_many_restart("r", restart), "r: 9091 systems, a restart file has at most 9090", Error);
    std::filesystem::remove(path);
}

TEST_CASE("a damaged state of a replica exchange is refused") {
    ReplicaExchange exchange({100, 200, 300}, 1);
    exchange.set_state("4 1 1 0 0 2 1 2 0 3 2 1 2 0", 4);
    CHECK(exchange.state() == "4 1 1 0 0 2 1 2 0 3 2 1 2 0");
    CHECK(exchange.round_trips() == 4);
    for (const char* damaged :
         {"9223372036854775807 1 1 0 0 2 1 2 0 3 2 1 2 0",  // rounds
          "5 1 1 0 0 2 1 2 0 3 2 1 2 0", "-1 1 1 0 0 2 0 2 0 0 0 0 0 0",
          "4 1 3 0 0 2 1 2 0 3 2 1 2 0",  // ends of the ladder
          "4 1 -1 0 0 2 1 2 0 3 2 1 2 0",
          "4 1 1 -1 0 2 1 2 0 3 2 1 2 0",  // trips
          "4 1 1 1 0 2 1 2 0 3 2 1 2 0", "4 1 1 0 0 2 9223372036854775807 2 0 9223372036854775807 2 1 2 0",
          "4 1 1 0 0 2 1 2 0 3 5 1 2 0",  // counts
          "4 1 1 0 0 2 1 2 0 3 2 3 2 0", "4 1 1 0 0 2 1 2 0 3 2 -1 2 0",
          "4 1 1 0 0 2 1 2 0 3 2 1 2 0 7",  // length
          "4 1 1 0 0 2 1 2 0 3 2 1 2"}) {
        CAPTURE(damaged);
        CHECK_THROWS_AS(exchange.set_state(damaged, 4), Error);
    }
}

TEST_CASE("a ladder of temperatures has equal ratios") {
    const std::vector<double> ladder = temperature_ladder(200, 1600, 4);
    REQUIRE(ladder.size() == 4);
    for (size_t i = 0; i < 4; ++i) CHECK(ladder[i] == doctest::Approx(200 * std::pow(2.0, i)).epsilon(1e-12));
    CHECK_THROWS_AS(temperature_ladder(300, 300, 3), Error);
    CHECK_THROWS_AS(temperature_ladder(0, 300, 3), Error);
    CHECK_THROWS_AS(temperature_ladder(100, 300, 1), Error);
    CHECK_THROWS_AS(ReplicaExchange({300, 250}, 1), Error);
    CHECK_THROWS_AS(ReplicaExchange({300}, 1), Error);
}

TEST_CASE("replica exchange of oscillators has their energies and their acceptance") {
    // Two atoms on springs: potential energies have gamma distributions of shape 3. A swap of neighbours, R the ratio
    // of their temperatures, is accepted with the probability 2 P(E_cold > E_hot) = 2 I_{1 / (1 + R)}(3, 3).
    const double time_step = 20, ratio = 1.7;
    std::vector<double> temperatures = {30, 30 * ratio, 30 * ratio * ratio, 30 * ratio * ratio * ratio};
    const int64_t every = 6, rounds = 12000;
    const auto run = [&](int64_t round_count, std::vector<double>* potential, std::vector<double>* kinetic) {
        SpringBatch springs(1);
        std::vector<DynamicsStart> starts;
        for (size_t i = 0; i < temperatures.size(); ++i) {
            starts.push_back(start_of(argon_atoms({0.01, 0, 0, 0, 0, 0}), ThermostatOptions::Kind::langevin,
                                      temperatures[i], 7 + i));
            starts.back().options.time_step = time_step;
        }
        ManyDynamics dynamics(springs, starts, {});
        ReplicaExchange exchange(temperatures, 11);
        for (int64_t round = 0; round < round_count; ++round) {
            for (int64_t step = 0; step < every; ++step) dynamics.step();
            for (size_t i = 0; potential && i < temperatures.size(); ++i) {
                (*potential)[i] += dynamics.at(i)->potential_energy() / static_cast<double>(round_count);
                (*kinetic)[i] += dynamics.at(i)->kinetic_energy() / static_cast<double>(round_count);
            }
            const double before = dynamics.at(0)->conserved_energy();
            exchange.exchange(dynamics, dynamics.at(0)->step_count());
            CHECK(dynamics.at(0)->conserved_energy() == doctest::Approx(before).epsilon(1e-9));
        }
        return exchange;
    };
    std::vector<double> potential(4), kinetic(4);
    const ReplicaExchange exchange = run(rounds, &potential, &kinetic);
    const double frequency2 = kAccelerationUnit / Particles(argon_atoms({0, 0, 0})).masses[0];
    for (size_t i = 0; i < temperatures.size(); ++i) {
        const double expected = 3 * kBoltzmann * temperatures[i];
        CHECK(potential[i] == doctest::Approx(expected).epsilon(0.03));
        // BAOAB has the right positions of oscillators for every time step, and velocities too small by this.
        CHECK(kinetic[i] == doctest::Approx(expected * (1 - frequency2 * time_step * time_step / 4)).epsilon(0.03));
    }
    const double x = 1 / (1 + ratio), y = 1 - x;
    const double accepted = 2 * (10 * x * x * x * y * y + 5 * x * x * x * x * y + x * x * x * x * x);
    CHECK(accepted == doctest::Approx(0.5352).epsilon(1e-4));
    for (size_t pair = 0; pair < 3; ++pair) {
        CHECK(exchange.counts(pair).attempted == rounds / 2);
        CHECK(std::abs(exchange.counts(pair).ratio() - accepted) < 0.025);
    }
    CHECK(exchange.round_trips() > 100);

    ReplicaExchange again(temperatures, 11);
    again.set_state(exchange.state(), rounds);
    CHECK(again.state() == exchange.state());
    CHECK(again.replicas() == exchange.replicas());
    for (const char* damaged : {"", "1 2", "3 0 1 0 0 1 0 1 1 0 2 1 0 1 1 1 1 1 1"})
        CHECK_THROWS_AS(again.set_state(damaged, rounds), Error);
    CHECK_THROWS_AS(again.set_state(exchange.state(), rounds - 1), Error);
    CHECK(run(50, nullptr, nullptr).state() == run(50, nullptr, nullptr).state());
}
