// SPDX-License-Identifier: MIT
// Many systems at once give each what it has alone, bit for bit on the CPU.
#include <doctest/doctest.h>

#include "core/error.h"
#include "dynamics/relaxation_batch.h"
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

// Pulls atoms to the origin, and knows no system of three atoms.
class SpringBatch : public BatchForces {
public:
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
    ThreadTeam team_{2};
};

}  // namespace

TEST_CASE("systems over threads have the bits that they have alone") {
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
