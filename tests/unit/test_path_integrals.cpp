// SPDX-License-Identifier: MIT
// Ring polymers against what is known of them: oscillators, free particles, the classical limit.
#include <doctest/doctest.h>

#include <functional>
#include <numbers>

#include "../tags.h"
#include "close.h"
#include "core/error.h"
#include "dynamics/molecular_dynamics.h"
#include "dynamics/ring_polymer.h"
#include "dynamics/units.h"
#include "engine/load_model.h"
#include "formats/extxyz.h"
#include "test_dynamics_support.h"

using namespace mlff;
using namespace mlff::test;

namespace {

using Kind = ThermostatOptions::Kind;

// Every atom on a spring to the origin, or free.
class OriginSprings : public BatchForces {
public:
    explicit OriginSprings(double stiffness, int threads = 1) : stiffness_(stiffness), team_(threads) {}
    void compute(std::span<const SystemView> systems, std::span<BatchAnswer* const> answers) override {
        batch_size = systems.size();
        for (size_t i = 0; i < systems.size(); ++i) {
            answers[i]->energy = 0;
            answers[i]->forces.clear();
            for (const double x : std::span(systems[i].positions, static_cast<size_t>(3 * systems[i].atom_count))) {
                answers[i]->energy += 0.5 * stiffness_ * x * x;
                answers[i]->forces.push_back(-stiffness_ * x);
            }
        }
    }
    ThreadTeam& team() override { return team_; }

    size_t batch_size = 0;

private:
    double stiffness_;
    ThreadTeam team_;
};

RingPolymerOptions ring_options(double time_step, double temperature, Kind bath, uint64_t seed = 5) {
    RingPolymerOptions options;
    options.time_step = time_step;
    options.thermostat = {bath, temperature, 20, seed};
    return options;
}

// Hydrogen-like atoms at random places around the origin, in a bath.
Particles light_atoms(size_t count, double temperature, double spread = 0.05) {
    Particles atoms = argon_atoms(std::vector<double>(3 * count, 0.0));
    atoms.rigid_degrees = 0;
    atoms.masses.assign(count, 1.008);
    for (size_t i = 0; i < 3 * count; ++i) atoms.positions[i] = spread * random_normals(3, 0, i)[0];
    set_temperature(atoms, temperature, 9);
    return atoms;
}

double energy_quantum(double stiffness) {  // hbar w, eV
    return kReducedPlanck * std::sqrt(stiffness * kAccelerationUnit / 1.008);
}

// kT sum over modes of w^2 / (w^2 + w_k^2): the energy of an oscillator of P beads.
double oscillator_energy(double quantum, double temperature, int64_t beads) {
    const double thermal = kBoltzmann * temperature;
    double sum = 0;
    for (int64_t k = 0; k < beads; ++k) {
        const auto count = static_cast<double>(beads);
        const double mode = 2 * count * thermal * std::sin(static_cast<double>(k) * std::numbers::pi / count);
        sum += quantum * quantum / (quantum * quantum + mode * mode);
    }
    return thermal * sum;
}

// Means over blocks of a run, for an error.
struct Means {
    std::vector<double> blocks;
    double mean() const {
        double sum = 0;
        for (const double block : blocks) sum += block;
        return sum / static_cast<double>(blocks.size());
    }
    double error() const {
        double sum = 0;
        for (const double block : blocks) sum += std::pow(block - mean(), 2);
        const auto count = static_cast<double>(blocks.size());
        return std::sqrt(sum / (count * (count - 1)));
    }
};

std::vector<Means> sample(RingPolymer& polymer, int block_count, int block_steps,
                          const std::vector<std::function<double()>>& quantities) {
    for (int step = 0; step < block_steps; ++step) polymer.step();
    std::vector<Means> means(quantities.size());
    for (int block = 0; block < block_count; ++block) {
        for (Means& mean : means) mean.blocks.push_back(0);
        for (int step = 0; step < block_steps; ++step) {
            polymer.step();
            for (size_t i = 0; i < quantities.size(); ++i) means[i].blocks.back() += quantities[i]() / block_steps;
        }
    }
    return means;
}

void check_same(const RingPolymer& found, const RingPolymer& expected) {
    REQUIRE(found.bead_count() == expected.bead_count());
    CHECK(found.step_count() == expected.step_count());
    for (size_t j = 0; j < found.bead_count(); ++j) {
        CHECK(found.beads()[j].positions == expected.beads()[j].positions);
        CHECK(found.beads()[j].velocities == expected.beads()[j].velocities);
        CHECK(found.bead_potential_energy(j) == expected.bead_potential_energy(j));
    }
    CHECK(found.heat() == expected.heat());
    CHECK(found.conserved_energy() == expected.conserved_energy());
}

}  // namespace

TEST_CASE("modes of a ring are orthonormal and diagonalise its springs") {
    for (const int64_t beads : {1, 2, 3, 4, 7, 16}) {
        CAPTURE(beads);
        const RingModes modes(beads, 300);
        const size_t n = modes.count;
        CHECK(modes.spring == doctest::Approx(static_cast<double>(beads) * kBoltzmann * 300 / kReducedPlanck));
        std::vector<double> products, identity, springs, expected;
        for (size_t a = 0; a < n; ++a)
            for (size_t b = 0; b < n; ++b) {
                double product = 0, spring = 0;
                for (size_t j = 0; j < n; ++j) {
                    const double next = modes.of_bead[(j + 1) % n * n + a] - modes.of_bead[j * n + a];
                    const double other = modes.of_bead[(j + 1) % n * n + b] - modes.of_bead[j * n + b];
                    product += modes.of_bead[j * n + a] * modes.of_mode[b * n + j];
                    spring += modes.spring * modes.spring * next * other;
                }
                products.push_back(product);
                springs.push_back(spring);
                identity.push_back(a == b ? 1 : 0);
                expected.push_back(a == b ? modes.frequencies[a] * modes.frequencies[a] : 0);
            }
        CHECK_ALL_CLOSE(products, identity, 1e-13);
        CHECK_ALL_CLOSE(springs, expected, 1e-13 * (1 + 4 * modes.spring * modes.spring));
    }
    CHECK_THROWS_AS(RingModes(0, 300), Error);
    CHECK_THROWS_AS(RingModes(4, 0), Error);
    CHECK_THROWS_AS(RingModes(4, std::nan("")), Error);
}

TEST_CASE("a free ring polymer moves exactly") {
    for (const int64_t count : {1, 2, 5, 8}) {
        CAPTURE(count);
        OriginSprings free(0);
        std::vector<Particles> beads = make_beads(light_atoms(3, 300), count, 300, 4);
        for (size_t j = 0; j < beads.size(); ++j)
            for (size_t i = 0; i < 9; ++i) beads[j].positions[i] += 0.1 * random_normals(8, j, i)[0];
        RingPolymer whole(free, beads, ring_options(7, 300, Kind::none));
        RingPolymer halves(free, beads, ring_options(3.5, 300, Kind::none));
        whole.step();
        halves.step();
        halves.step();
        // Velocity Verlet of the springs, which has an error of the square of the time step.
        const double spring = RingModes(count, 300).spring;
        const auto verlet = [&](int steps) {
            std::vector<Particles> moved = beads;
            const double dt = 7.0 / steps;
            const auto kick = [&] {
                for (size_t j = 0; j < moved.size(); ++j)
                    for (size_t i = 0; i < 9; ++i)
                        moved[j].velocities[i] +=
                            0.5 * dt * spring * spring *
                            (moved[(j + 1) % moved.size()].positions[i] +
                             moved[(j + moved.size() - 1) % moved.size()].positions[i] - 2 * moved[j].positions[i]);
            };
            for (int step = 0; step < steps; ++step) {
                kick();
                for (Particles& bead : moved)
                    for (size_t i = 0; i < 9; ++i) bead.positions[i] += dt * bead.velocities[i];
                kick();
            }
            return moved;
        };
        const std::vector<Particles> moved = verlet(4000);
        for (size_t j = 0; j < beads.size(); ++j) {
            CHECK_ALL_CLOSE(halves.beads()[j].positions, whole.beads()[j].positions, 1e-12);
            CHECK_ALL_CLOSE(halves.beads()[j].velocities, whole.beads()[j].velocities, 1e-12);
            CHECK_ALL_CLOSE(whole.beads()[j].positions, moved[j].positions, 1e-6);
            CHECK_ALL_CLOSE(whole.beads()[j].velocities, moved[j].velocities, 1e-6);
        }
        CHECK(halves.conserved_energy() == doctest::Approx(whole.conserved_energy()).epsilon(1e-12));
    }
}

TEST_CASE("one bead is Langevin dynamics, bit for bit") {
    OriginSprings springs(3);
    const Particles atoms = light_atoms(4, 250);
    RingPolymer polymer(springs, make_beads(atoms, 1, 250, 6), ring_options(0.5, 250, Kind::langevin));
    class Single : public ForceProvider {
    public:
        double compute(const SystemView& system, double* forces, double*) override {
            OriginSprings springs(3);
            BatchAnswer answer;
            BatchAnswer* const place = &answer;
            springs.compute({&system, 1}, {&place, 1});
            std::copy(answer.forces.begin(), answer.forces.end(), forces);
            return answer.energy;
        }
    } single;
    DynamicsOptions options;
    options.time_step = 0.5;
    options.thermostat = ring_options(0.5, 250, Kind::langevin).thermostat;
    MolecularDynamics dynamics(single, atoms, options);
    for (int step = 0; step < 50; ++step) polymer.step();
    dynamics.advance(50);
    CHECK(polymer.beads()[0].positions == dynamics.particles().positions);
    CHECK(polymer.beads()[0].velocities == dynamics.particles().velocities);
    CHECK(polymer.conserved_energy() == dynamics.conserved_energy());
    CHECK(polymer.ring_temperature() == doctest::Approx(dynamics.temperature()).epsilon(1e-12));
    CHECK(polymer.primitive_kinetic_energy() == doctest::Approx(6 * kBoltzmann * 250).epsilon(1e-12));
    CHECK(polymer.virial_kinetic_energy() == doctest::Approx(6 * kBoltzmann * 250).epsilon(1e-12));
}

TEST_CASE("oscillators have the energy of P beads, and of a quantum oscillator if they are many" *
          test::kSlowUnderSanitizers) {
    struct Case {
        int64_t beads;
        size_t atoms;
        int block_steps;
        double
            largest_error;  // of the mean, in units of the energy: the statistics must be good enough to say something
    };
    const double stiffness = 4, temperature = 300, quantum = energy_quantum(stiffness);
    REQUIRE(quantum / (kBoltzmann * temperature) > 4.5);  // far from classical
    const double exact = 0.5 * quantum / std::tanh(0.5 * quantum / (kBoltzmann * temperature));
    for (const Case& run :
         {Case{1, 40, 700, 0.01}, Case{4, 30, 500, 0.01}, Case{5, 30, 500, 0.01}, Case{32, 12, 250, 0.015}}) {
        CAPTURE(run.beads);
        OriginSprings springs(stiffness);
        // w dt = 0.1: the error of the time step is below a thousandth.
        RingPolymer polymer(springs, make_beads(light_atoms(run.atoms, temperature), run.beads, temperature, 2),
                            ring_options(0.5, temperature, Kind::langevin));
        CHECK(springs.batch_size == static_cast<size_t>(run.beads));
        const double oscillators = 3 * static_cast<double>(run.atoms);
        const std::vector<Means> means =
            sample(polymer, 20, run.block_steps,
                   {[&] { return polymer.total_energy() / oscillators; },
                    [&] { return (polymer.potential_energy() + polymer.primitive_kinetic_energy()) / oscillators; },
                    [&] { return polymer.ring_temperature(); }, [&] { return polymer.centroid().temperature(); }});
        const double expected = oscillator_energy(quantum, temperature, run.beads);
        for (size_t i = 0; i < 2; ++i) {
            CAPTURE(i);
            CAPTURE(means[i].mean());
            CAPTURE(means[i].error());
            CHECK(means[i].error() < (i == 0 ? 1 : 3) * run.largest_error * expected);
            CHECK(std::abs(means[i].mean() - expected) < 3 * means[i].error() + 1e-3 * expected);
        }
        for (size_t i = 2; i < 4; ++i) {
            CHECK(means[i].error() < 0.02 * temperature);
            CHECK(std::abs(means[i].mean() - temperature) < 3 * means[i].error() + 3e-3 * temperature);
        }
        if (run.beads == 32) CHECK(expected == doctest::Approx(exact).epsilon(0.01));
        if (run.beads == 1) CHECK(expected == doctest::Approx(kBoltzmann * temperature).epsilon(1e-12));
    }
    CHECK(oscillator_energy(quantum, temperature, 2000) == doctest::Approx(exact).epsilon(1e-5));
    CHECK(exact > 2 * kBoltzmann * temperature);
}

TEST_CASE("free particles have the kinetic energy of a gas, and the size of their wavelength" *
          test::kSlowUnderSanitizers) {
    const double temperature = 200, thermal = kBoltzmann * temperature;
    OriginSprings free(0);
    const size_t atoms = 40, count = 6;
    RingPolymer polymer(free, make_beads(light_atoms(atoms, temperature), count, temperature, 2),
                        ring_options(4, temperature, Kind::langevin));
    const auto size2 = [&] {  // mean square distance from the centroid in one direction
        const Particles mean = polymer.centroid();
        double sum = 0;
        for (const Particles& bead : polymer.beads())
            for (size_t i = 0; i < 3 * atoms; ++i) sum += std::pow(bead.positions[i] - mean.positions[i], 2);
        return sum / static_cast<double>(3 * atoms * count);
    };
    const std::vector<Means> means =
        sample(polymer, 20, 150, {[&] { return polymer.primitive_kinetic_energy() / (3.0 * atoms); }, size2});
    const double squared_wavelength =
        kReducedPlanck * kReducedPlanck * kAccelerationUnit / (1.008 * thermal);  // hbar^2 / (m k T), angstrom^2
    for (const auto& [found, expected] :
         {std::pair{means[0], 0.5 * thermal}, {means[1], squared_wavelength * (1 - 1.0 / (count * count)) / 12}}) {
        CHECK(found.error() < 0.05 * expected);
        CHECK(std::abs(found.mean() - expected) < 3 * found.error());
    }
    CHECK(polymer.virial_kinetic_energy() == doctest::Approx(1.5 * atoms * thermal).epsilon(1e-12));
}

TEST_CASE("ring-polymer dynamics without a bath conserve the energy and the momentum" * test::kSlowUnderSanitizers) {
    const std::vector<Frame> frames = read_extxyz(MLFF_TEST_DATA_DIR "/student_frames.xyz");
    const auto model = load_model("builtin");
    SessionOptions session_options;
    session_options.device = "cpu";
    session_options.thread_count = 2;
    Session session(model, session_options);
    SessionBatch forces(session, model, session_options);
    Particles atoms(frames[0].view());
    set_temperature(atoms, 300, 3);
    const auto range = [&](double time_step) {
        RingPolymer polymer(forces, make_beads(atoms, 4, 300, 3), ring_options(time_step, 300, Kind::none));
        const double start = polymer.conserved_energy();
        double largest = 0;
        while (static_cast<double>(polymer.step_count()) * time_step < 8) {
            polymer.step();
            largest = std::max(largest, std::abs(polymer.conserved_energy() - start));
        }
        const Vec3 momentum = polymer.centroid().momentum();
        CHECK_ALL_CLOSE(momentum, (Vec3{0, 0, 0}), 1e-4);
        CHECK(polymer.heat() == 0);
        return largest / static_cast<double>(atoms.atom_count());
    };
    const double coarse = range(0.2), fine = range(0.1);
    CAPTURE(coarse);
    CAPTURE(fine);
    CHECK(coarse < 2e-3);         // eV/atom
    CHECK(fine < 0.35 * coarse);  // second order: a quarter
}

TEST_CASE("ring polymers have the same bits on any number of threads and after a restart") {
    const auto options = ring_options(0.5, 300, Kind::langevin);
    const std::vector<Particles> beads = make_beads(light_atoms(30, 300), 6, 300, 2);
    OriginSprings one(4, 1), three(4, 3);
    RingPolymer whole(one, beads, options), threads(three, beads, options), first(one, beads, options);
    for (int step = 0; step < 40; ++step) whole.step(), threads.step();
    check_same(threads, whole);
    for (int step = 0; step < 17; ++step) first.step();
    RingPolymer second(three, first.beads(), options);
    second.go_on_at(17, first.heat());
    for (int step = 17; step < 40; ++step) second.step();
    check_same(second, whole);
    auto other = options;
    other.thermostat.seed = 6;
    RingPolymer different(one, beads, other);
    for (int step = 0; step < 40; ++step) different.step();
    CHECK(different.beads()[0].positions != whole.beads()[0].positions);
}

TEST_CASE("ring polymers refuse what they cannot do") {
    OriginSprings springs(1);
    const std::vector<Particles> beads = make_beads(light_atoms(2, 300), 3, 300, 2);
    CHECK_THROWS_AS(RingPolymer(springs, beads, ring_options(0, 300, Kind::none)), Error);
    CHECK_THROWS_AS(RingPolymer(springs, beads, ring_options(1, 300, Kind::nose_hoover)), Error);
    CHECK_THROWS_AS(RingPolymer(springs, beads, ring_options(1, 0, Kind::none)), Error);
    std::vector<Particles> fixed = beads;
    for (Particles& bead : fixed) bead.is_fixed = {1, 0};
    CHECK_THROWS_WITH_AS(RingPolymer(springs, fixed, ring_options(1, 300, Kind::none)),
                         "some atoms are fixed, but the atoms of a ring polymer must all be free", Error);
    std::vector<Particles> others = beads;
    others[1].masses[0] = 2;
    CHECK_THROWS_AS(RingPolymer(springs, others, ring_options(1, 300, Kind::none)), Error);
    RingPolymer hot(springs, beads, ring_options(1, 300, Kind::none));
    StabilityLimits limits;
    limits.temperature = 1;
    hot.watch(limits);
    CHECK_THROWS_AS(hot.step(), Error);
    CHECK(hot.recent().size() == 1);
}
