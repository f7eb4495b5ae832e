// SPDX-License-Identifier: MIT
// The checks of `mlff validate` on data whose answer is known.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include <nlohmann/json.hpp>

#include "../sanitized.h"
#include "analytic/model.h"
#include "close.h"
#include "core/error.h"
#include "dynamics/counter_random.h"
#include "dynamics/units.h"
#include "tools/report/svg_plot.h"
#include "tools/validate/check_names.h"
#include "tools/validate/fastest_vibration.h"
#include "tools/validate/pair_difference.h"
#include "tools/validate/report.h"
#include "tools/validate/statistics.h"
#include "tools/validate/structure_check.h"
#include "tools/validate/temperature_check.h"

using namespace mlff;
using namespace mlff::validate;

namespace {

double normal(uint64_t seed, uint64_t i) { return random_normals(seed, i, 0)[0]; }

// Independent kinetic energies of `degrees` degrees of freedom at this temperature, eV.
std::vector<double> canonical_kinetic_energies(int degrees, double temperature, size_t count, uint64_t seed) {
    std::vector<double> energies(count, 0.0);
    for (size_t i = 0; i < count; ++i)
        for (int k = 0; k < degrees; k += 3)
            for (double x : random_normals(seed, i, static_cast<uint64_t>(k)))
                energies[i] += 0.5 * kBoltzmann * temperature * x * x;
    return energies;
}

Particles particles_of(const std::vector<int32_t>& numbers, const std::vector<double>& positions, double box = 0) {
    SystemView system;
    system.atom_count = static_cast<int64_t>(numbers.size());
    system.atomic_numbers = numbers.data();
    system.positions = positions.data();
    for (size_t k = 0; k < 3; ++k) system.cell[k][k] = box;
    system.periodic = {box > 0, box > 0, box > 0};
    return Particles(system);
}

Particles water() { return particles_of({8, 1, 1}, {0, 0, 0, 0.96, 0, 0, -0.24, 0.93, 0}); }

Run run_of_water() {
    Run run;
    run.phase = "NVE";
    run.time_step = 0.5;
    run.last = water();
    run.elements = {1, 8};
    return run;
}

const Check& named(const std::vector<Check>& checks, const std::string& beginning) {
    for (const Check& check : checks)
        if (check.name.starts_with(beginning)) return check;
    FAIL("there is no check " << beginning);
    return checks.front();
}

}  // namespace

TEST_CASE("a line through white noise has its slope, its scatter and the textbook error") {
    std::vector<double> values;
    for (uint64_t i = 0; i < 4000; ++i) values.push_back(3 + 0.02 * static_cast<double>(i) * 0.5 + 0.7 * normal(3, i));
    const LineFit fit = fit_line(values, 0.5);
    const double textbook = 0.7 / std::sqrt(4000.0) / std::sqrt((4000.0 * 4000 - 1) / 12) / 0.5;
    CHECK(std::abs(fit.slope - 0.02) < 4 * textbook);
    CHECK(std::abs(fit.intercept - 3) < 0.1);
    CHECK(fit.residual_deviation == doctest::Approx(0.7).epsilon(0.05));
    CHECK(fit.slope_error == doctest::Approx(textbook).epsilon(0.5));  // 20 blocks know it no better
    CHECK_THROWS_AS(fit_line(std::vector<double>(19, 1.0), 1), Error);
}

TEST_CASE("the mean of a correlated series knows how few samples it has") {
    constexpr double kKept = 0.8;  // x' = kKept x + noise: inefficiency (1 + kKept) / (1 - kKept) = 9
    std::vector<double> values;
    double x = 0;
    for (uint64_t i = 0; i < 40'000; ++i)
        values.push_back(5 + (x = kKept * x + std::sqrt(1 - kKept * kKept) * normal(4, i)));
    const CorrelatedMean found = correlated_mean(values);
    CHECK(found.inefficiency == doctest::Approx(9).epsilon(0.2));
    CHECK(found.error == doctest::Approx(std::sqrt(9.0 / 40'000)).epsilon(0.2));
    CHECK(std::abs(found.mean - 5) < 4 * found.error);
}

TEST_CASE("the chi-square distribution is that of the tables") {
    CHECK(chi_square_cdf(3.841458820694124, 1) == doctest::Approx(0.95).epsilon(1e-10));
    CHECK(chi_square_cdf(18.307038053275146, 10) == doctest::Approx(0.95).epsilon(1e-10));
    CHECK(chi_square_cdf(2.7, 2) == doctest::Approx(1 - std::exp(-1.35)).epsilon(1e-12));
    CHECK(chi_square_cdf(576 * std::pow(1 - 2.0 / (9 * 576), 3), 576) ==
          doctest::Approx(0.5).epsilon(1e-3));  // Wilson and Hilferty's median
    CHECK(chi_square_cdf(0, 5) == 0);
    CHECK(chi_square_cdf(1e5, 5) == doctest::Approx(1));
    CHECK(std::isnan(chi_square_cdf(NAN, 5)));
}

TEST_CASE("canonical kinetic energies are taken for canonical, others are not") {
    const std::vector<double> good = canonical_kinetic_energies(9, 300, 600, 5);
    CHECK(canonical_shape_test(good, 9, 1).p_value > 1e-3);
    CHECK(canonical_shape_test(good, 9, 1).sample_count == 600);
    CHECK(canonical_shape_test(good, 9, 2.5).sample_count == 240);
    std::vector<double> narrow = good;  // half the variance, the same mean: a thermostat that rescales velocities, say
    const double mean = correlated_mean(good).mean;
    for (double& energy : narrow) energy = mean + (energy - mean) / std::numbers::sqrt2;
    CHECK(canonical_shape_test(narrow, 9, 1).p_value < 1e-6);
    std::vector<double> broken = good;
    broken[7] = NAN;
    CHECK_FALSE(canonical_shape_test(broken, 9, 1).p_value > 0);
    CHECK(canonical_shape_test(std::span(good).first(14), 9, 1).p_value == 1);  // too few for a test
    CHECK(canonical_shape_test(std::span(good).first(14), 9, 1).sample_count == 14);
}

TEST_CASE("a shift of all pairs is the distance between two histograms") {
    std::vector<double> first(40, 0.0), second(40, 0.0);
    first[10] = 30, second[14] = 60;
    CHECK(histogram_shift(first, second, 0.05) == doctest::Approx(0.2));
    CHECK(histogram_shift(first, first, 0.05) == 0);
    CHECK(std::isnan(histogram_shift(first, std::vector<double>(40, 0.0), 0.05)));
}

TEST_CASE("a check takes NaN for a failure and a limit within its uncertainty for a doubt") {
    CHECK(at_most("x", 1, 1, "").verdict() == Verdict::passed);
    CHECK(at_most("x", 1.01, 1, "").verdict() == Verdict::failed);
    CHECK(at_most("x", NAN, 1, "").verdict() == Verdict::failed);
    const auto verdict = [](double value, double uncertainty) {
        return Check{"drift", value, "", -50, 50, uncertainty, ""}.verdict();
    };
    CHECK(verdict(-60, 0) == Verdict::failed);
    CHECK(verdict(-60, 9) == Verdict::failed);
    CHECK(verdict(-60, 11) == Verdict::undecided);
    CHECK(verdict(-40, 11) == Verdict::undecided);
    CHECK(verdict(-40, 9) == Verdict::passed);
    CHECK(verdict(0, 1000) == Verdict::undecided);
    CHECK(verdict(0, INFINITY) == Verdict::undecided);
    CHECK(verdict(0, NAN) == Verdict::failed);
    CHECK(verdict(NAN, 1) == Verdict::failed);
    Check few{"p-value", 0.5, "", 1e-4, 1, 0, ""};
    few.has_few_samples = true;
    CHECK(few.verdict() == Verdict::undecided);
    few.value = 1e-5;
    CHECK(few.verdict() == Verdict::failed);
    Report nothing;
    CHECK_FALSE(nothing.is_passed());
    CHECK_FALSE(SystemReport{}.is_passed());
}

TEST_CASE("thresholds come from a file, key by key, and nothing else is in it") {
    const Thresholds thresholds = parse_thresholds(R"({"momentum": 0.5, "closest_contact": 1})", "limits.json");
    CHECK(thresholds.momentum == 0.5);
    CHECK(thresholds.closest_contact == 1);
    CHECK(thresholds.bond_mean_percent == Thresholds{}.bond_mean_percent);
    CHECK_THROWS_WITH_AS(parse_thresholds(R"({"momentun": 0.5})", "limits.json"),
                         doctest::Contains("limits.json: 'momentun' is not a threshold"), Error);
    for (const char* bad : {R"({"momentum": -1})", R"({"momentum": 0})", R"({"momentum": "1"})",
                            R"({"momentum": null})", R"([1])", R"({"momentum": 1e999})", "{"})
        CHECK_THROWS_AS(parse_thresholds(bad, "limits.json"), Error);
    CHECK(thresholds_json(thresholds).size() == threshold_entries().size());
}

TEST_CASE(
    "drift is the slope of the energy, and a fluctuation that goes with the square of the time step has order 2") {
    const auto run_with = [](double time_step, double drift, double power) {
        Run run = run_of_water();
        run.time_step = time_step;
        for (int step = 1; step <= 2000 / time_step; ++step) {
            const double time = step * time_step;
            run.total_energy.push_back(-2 + drift * time + 1e-4 * std::pow(time_step, power) * std::sin(0.31 * time));
            run.kinetic_energy.push_back(0.1);
        }
        return run;
    };
    const Run drifting = run_with(0.5, 3e-7, 2);
    const EnergyDrift drift = energy_drift(drifting, 300);
    CHECK(drift.meV_per_atom_per_ns == doctest::Approx(100).epsilon(0.01));  // 3e-7 eV/fs of 3 atoms
    CHECK(drift.percent_of_kinetic_energy ==
          doctest::Approx(100 * 3e-7 * 2000 / (1.5 * 3 * kBoltzmann * 300)).epsilon(0.01));
    CHECK(drift.fluctuation_meV_per_atom == doctest::Approx(1e3 * 1e-4 * 0.25 / std::numbers::sqrt2 / 3).epsilon(0.02));
    Thresholds strict;
    strict.drift_meV_per_atom_per_ns = 50;
    const std::vector<Check> checks = check_energy(drifting, run_with(0.25, 3e-7, 2), false, 300, strict);
    CHECK_FALSE(named(checks, "energy drift").is_passed());
    CHECK(named(checks, "order").value == doctest::Approx(2).epsilon(0.01));
    CHECK(named(checks, "order").is_passed());
    CHECK_FALSE(named(check_energy(run_with(0.5, 0, 1), run_with(0.25, 0, 1), false, 300, {}), "order").is_passed());
    CHECK(named(check_energy(run_with(0.5, 1e-8, 2), run_with(0.25, 0, 2), true, 300, {}), "energy drift").is_passed());
}

TEST_CASE("the period of the fastest vibration comes from forces, and is that of a bond") {
    // An oxygen at rest, and hydrogens on springs along x with random thermal displacements.
    constexpr double kPeriod = 9, kFrequency = 2 * std::numbers::pi / kPeriod;  // fs, 1/fs
    Run run = run_of_water();
    const double mass = run.last.masses[1], spring = mass * kFrequency * kFrequency / kAccelerationUnit;
    for (uint64_t i = 0; i < 4000; ++i) {
        std::vector<double> forces(9, 0.0);
        for (size_t atom : {1, 2}) forces[3 * atom] = -spring * std::sqrt(kBoltzmann * 300 / spring) * normal(atom, i);
        run.snapshots.push_back({static_cast<int64_t>(i), run.last.positions, forces, 0});
    }
    CHECK(fastest_vibration(run, 300).atomic_number == 1);
    CHECK(fastest_vibration(run, 300).period == doctest::Approx(kPeriod).epsilon(0.03));
    run.snapshots[7].forces[0] = NAN;
    CHECK(std::isnan(fastest_vibration(run, 300).period));
}

TEST_CASE("a bath's temperature is found, and an element that is too hot is named") {
    Run run = run_of_water();
    run.friction = 2;  // one independent sample a step
    const auto fill = [&](double oxygen_temperature) {
        run.element_kinetic_energy = {canonical_kinetic_energies(6, 300, 4000, 6),
                                      canonical_kinetic_energies(3, oxygen_temperature, 4000, 7)};
        run.kinetic_energy.clear();
        for (size_t i = 0; i < 4000; ++i)
            run.kinetic_energy.push_back(run.element_kinetic_energy[0][i] + run.element_kinetic_energy[1][i]);
    };
    fill(300);
    for (const Check& check : check_temperature(run, 300, {})) CHECK_MESSAGE(check.is_passed(), check.name);
    CHECK_FALSE(named(check_temperature(run, 330, {}), "mean temperature").is_passed());
    fill(360);
    const std::vector<Check> checks = check_temperature(run, 300, {});
    CHECK_FALSE(named(checks, "equipartition").is_passed());
    CHECK(named(checks, "equipartition").note == "O");
    CHECK(named(checks, "equipartition").value == doctest::Approx(20).epsilon(0.3));
}

TEST_CASE("steps that would decide follow from the uncertainty and how it shrinks") {
    const auto steps = [](double value, double uncertainty, double power) {
        Check check{"x", value, "", -3, 3, uncertainty, ""};
        suggest_steps(check, 1000, power);
        return check.deciding_steps;
    };
    CHECK(steps(0, 1, 0.5) == 0);  // decided
    CHECK(steps(9, 1, 0.5) == 0);
    // Nothing is known: a value in the middle of the range, 3 from its limits, needs an uncertainty of 3 * 3 / 5.
    CHECK(steps(-12.7, 40.8, 0.5) == round_steps(1000 * std::pow(40.8 / 1.8, 2)));
    CHECK(steps(-12.7, 40.8, 1.5) == round_steps(1000 * std::pow(40.8 / 1.8, 2.0 / 3)));
    CHECK(steps(2.5, 1, 0.5) == round_steps(1000 * std::pow(1 / 0.3, 2)));
    CHECK(steps(3, 1, 0.5) ==
          25'000);  // on the limit: the true value is one standard error off, as far as anyone knows
    CHECK(steps(0, INFINITY, 0.5) == 1'000'000'000'000'000);
    CHECK(round_steps(617'284) == 620'000);
    CHECK(round_steps(101) == 110);
    CHECK(round_steps(7) == 7);
}

TEST_CASE("a run in a bath that is too short is undecided, and the steps that it asks for decide") {
    // Velocities that forget themselves with the friction, as those of free atoms do: kinetic energies of known mean,
    // variance and correlation.
    constexpr double kFriction = 0.5, kTimeStep = 0.5;
    const auto check_run = [&](double temperature, int64_t steps, uint64_t seed, const std::string& name) {
        Run run = run_of_water();
        run.friction = kFriction;
        run.time_step = kTimeStep;
        const double kept = std::exp(-kFriction * kTimeStep), added = std::sqrt(1 - kept * kept);
        run.element_kinetic_energy.resize(2);
        std::array<double, 9> velocities{};
        for (size_t k = 0; k < 9; ++k) velocities[k] = normal(seed + 1000, k);
        for (int64_t step = 0; step < steps / 2; ++step) {  // half of the steps are in the bath
            std::array<double, 2> energies{};
            for (size_t k = 0; k < 9; ++k) {
                velocities[k] =
                    kept * velocities[k] + added * random_normals(seed, static_cast<uint64_t>(step), k / 3)[k % 3];
                energies[k < 6 ? 0 : 1] += 0.5 * kBoltzmann * temperature * velocities[k] * velocities[k];
            }
            for (size_t i : {0, 1}) run.element_kinetic_energy[i].push_back(energies[i]);
            run.kinetic_energy.push_back(energies[0] + energies[1]);
        }
        const Check check = named(check_temperature(run, 300, {}), name);
        CHECK((check.verdict() == Verdict::undecided) == (check.deciding_steps > 0));
        return check;
    };
    for (const std::string name : {"mean temperature", "equipartition", "distribution"}) {
        CAPTURE(name);
        constexpr uint64_t kRuns = mlff::test::kIsSanitized ? 2 : 10;
        uint64_t decided = 0;
        for (uint64_t seed = 1; seed <= kRuns; ++seed) {
            const Check brief = check_run(300, 400, seed, name);
            REQUIRE(brief.verdict() == Verdict::undecided);
            CHECK(brief.deciding_steps > 400);
            CHECK(brief.deciding_steps < 200'000);
            const Verdict found = check_run(300, brief.deciding_steps, seed + 50, name).verdict();
            CHECK(found != Verdict::failed);
            decided += found == Verdict::passed;
        }
        CHECK(decided + 1 >= kRuns);
    }
    // A bath of 300 K that keeps 330 K.
    CHECK(check_run(330, 400, 1, "mean temperature").verdict() == Verdict::undecided);
    const int64_t enough = check_run(330, 400, 1, "mean temperature").deciding_steps;
    for (uint64_t seed = 2; seed <= 5; ++seed)
        CHECK(check_run(330, enough, seed, "mean temperature").verdict() == Verdict::failed);
}

TEST_CASE("a drift that a short run cannot know is undecided, and the steps that it asks for decide") {
    const auto check_run = [](double drift, int64_t steps, uint64_t seed) {  // meV/atom/ns
        Run run = run_of_water();
        double slow = 0;
        for (int64_t step = 1; step <= steps; ++step) {
            slow = 0.5 * slow + 3e-3 * normal(seed, static_cast<uint64_t>(step));
            run.total_energy.push_back(3e-9 * drift * run.time_step * static_cast<double>(step) + slow);
            run.kinetic_energy.push_back(0.1);
        }
        const Check check = named(check_energy(run, run, true, 300, {}), "energy drift");
        CHECK((check.verdict() == Verdict::undecided) == (check.deciding_steps > 0));
        return check;
    };
    for (const double drift : {0.0, 1000.0}) {
        CAPTURE(drift);
        const Verdict wrong = drift == 0 ? Verdict::failed : Verdict::passed;
        int undecided = 0, decided = 0;
        for (uint64_t seed = 1; seed <= 20; ++seed) {
            const Check brief = check_run(drift, 500, seed);
            CHECK(brief.verdict() != wrong);
            if (brief.verdict() != Verdict::undecided) continue;
            ++undecided;
            CHECK(brief.deciding_steps > 500);
            CHECK(brief.deciding_steps < 20'000);
            const Verdict found = check_run(drift, brief.deciding_steps, seed + 50).verdict();
            CHECK(found != wrong);
            decided += found != Verdict::undecided;
        }
        CHECK(undecided >= 18);
        CHECK(10 * decided >= 8 * undecided);
    }
}

TEST_CASE("the error of a slope knows of blocks that are correlated") {
    constexpr double kMemory = 100;  // as long as a block
    const double kept = std::exp(-1 / kMemory);
    int missed = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        std::vector<double> values;
        double x = normal(seed + 1000, 0);
        for (uint64_t i = 0; i < 2000; ++i)
            values.push_back(x = kept * x + std::sqrt(1 - kept * kept) * normal(seed, i));
        const LineFit fit = fit_line(values, 1);
        missed += !(std::abs(fit.slope) <= kStandardErrors * fit.slope_error);
    }
    CHECK(missed <= 6);  // 10 if the blocks are taken for independent
}

TEST_CASE("bonds, contacts and pair distances of structures that are known") {
    const std::vector<Bond> bonds = find_bonds(water().view());
    REQUIRE(bonds.size() == 2);
    CHECK(bonds[0].length == doctest::Approx(0.96).epsilon(0.001));
    // A bond across a boundary, followed where the other atom is the unwrapped one.
    const Particles across = particles_of({6, 6}, {0.5, 0, 0, 9.2, 0, 0}, 10);
    REQUIRE(find_bonds(across.view()).size() == 1);
    CHECK(find_bonds(across.view())[0].length == doctest::Approx(1.3));

    std::vector<double> stretched = water().positions;
    stretched[3] = 1.92;
    const std::vector<validate::Snapshot> snapshots = {{10, water().positions, {}, 0}, {20, stretched, {}, 0}};
    const Distances distances = measure_distances(water(), snapshots);
    const std::vector<Check> checks = check_structure(water(), snapshots, distances, distances, {});
    CHECK(named(checks, "length of a bond").value == doctest::Approx(100));
    CHECK_FALSE(named(checks, "length of a bond").is_passed());
    CHECK(
        named(checks, "length of a bond").note.find("atoms 0 (O) and 1 (H): 0.96 A at the start, 1.92 A in step 20") ==
        0);
    CHECK(named(checks, "mean length").value == doctest::Approx(50));
    CHECK(named(checks, "closest contact").value == doctest::Approx(0.96 / (0.66 + 0.31)).epsilon(0.02));

    // An ideal gas has g(r) = 1.
    constexpr double kBox = 14;
    std::vector<validate::Snapshot> gas;
    for (uint64_t frame = 0; frame < 30; ++frame) {
        validate::Snapshot snapshot{static_cast<int64_t>(frame), {}, {}, 0};
        for (uint64_t atom = 0; atom < 100; ++atom) {
            const auto bits = random_bits(8, frame, atom);
            for (size_t k = 0; k < 3; ++k) snapshot.positions.push_back(kBox * bits[k] / 4294967296.0);
        }
        gas.push_back(std::move(snapshot));
    }
    const Particles argon = particles_of(std::vector<int32_t>(100, 18), gas[0].positions, kBox);
    const Distances in_gas = measure_distances(argon, gas);
    REQUIRE(in_gas.histograms.size() == 1);
    const std::vector<double> g = radial_distribution(in_gas.histograms[0], in_gas, argon);
    double mean = 0;
    for (size_t bin = 60; bin < 120; ++bin) mean += g[bin] / 60;
    CHECK(mean == doctest::Approx(1).epsilon(0.03));
}

namespace {

// Two atoms whose distance scatters about `mean`, with a memory of `memory` snapshots.
std::vector<validate::Snapshot> vibrating_pair(double mean, double width, double memory, size_t count, uint64_t seed) {
    std::vector<validate::Snapshot> snapshots;
    const double kept = memory > 0 ? std::exp(-1 / memory) : 0;
    double x = normal(seed + 1000, 0);
    for (size_t i = 0; i < count; ++i) {
        x = kept * x + std::sqrt(1 - kept * kept) * normal(seed, i);
        snapshots.push_back({static_cast<int64_t>(i), {0, 0, 0, mean + width * x, 0, 0}, {}, 0});
    }
    return snapshots;
}

}  // namespace

TEST_CASE("pair distances of two runs: the shift is that of the pairs, and the same run has none") {
    const Particles pair = particles_of({8, 1}, {0, 0, 0, 2, 0, 0});
    const auto first = vibrating_pair(2.0, 0.1, 0, 400, 1), second = vibrating_pair(2.3, 0.1, 0, 400, 2);
    const std::vector<PairDifference> same = pair_differences(pair, first, first);
    REQUIRE(same.size() == 1);
    CHECK(same[0].elements == std::array<int32_t, 2>{1, 8});
    CHECK(same[0].shift == 0);
    CHECK(same[0].uncertainty == 0);
    CHECK(difference_text(same[0]) == "H-O; all distances are the same");

    const PairDifference moved = pair_differences(pair, second, first).front();
    CHECK(std::abs(moved.shift - 0.3) <= 0.03);
    CHECK(std::abs(moved.change - 0.3) <= 0.03);
    CHECK(std::abs(moved.distance - 2.15) <= 0.06);
    CHECK(moved.uncertainty > 0);
    CHECK(moved.uncertainty < 0.1);
    CHECK(difference_text(moved).find("H-O; farther apart by 0.3") == 0);
    const PairDifference back = pair_differences(pair, first, second).front();
    CHECK(std::abs(back.change + moved.change) <= 1e-12);
    CHECK(difference_text(back).find("H-O; closer by ") == 0);
    CHECK_THROWS_AS(pair_differences(pair, std::span(first).first(19), first), Error);
}

TEST_CASE("a pair that only one run has within 6 A counts as one at 6 A") {
    const Particles pair = particles_of({8, 1}, {0, 0, 0, 2, 0, 0});
    const auto near = vibrating_pair(5, 0, 0, 40, 1), far = vibrating_pair(9, 0, 0, 40, 1);
    CHECK(std::abs(pair_differences(pair, near, far).front().shift - 1) <= 0.051);  // bins of 0.05 A
    CHECK(std::abs(pair_differences(pair, far, near).front().change - 1) <= 0.051);
    CHECK(pair_differences(pair, far, far).empty());
}

TEST_CASE("the uncertainty of pair distances covers chance, with correlated snapshots too") {
    const Particles pair = particles_of({8, 1}, {0, 0, 0, 2, 0, 0});
    for (const double memory : {0.0, 3.0}) {
        CAPTURE(memory);
        int missed = 0;
        for (uint64_t seed = 1; seed <= 60; ++seed) {
            const PairDifference chance = pair_differences(pair, vibrating_pair(2, 0.3, memory, 80, seed),
                                                           vibrating_pair(2, 0.3, memory, 80, seed + 500))
                                              .front();
            CHECK(chance.shift > 0);
            missed += !(chance.shift <= chance.uncertainty);
        }
        CHECK(missed <= 1);
    }
}

TEST_CASE("the worst pair is the one that decides") {
    const auto pair = [](int32_t z, double shift, double uncertainty) {
        return PairDifference{{1, z}, shift, uncertainty, 0, 0};
    };
    // Beyond doubt above the limit comes before a larger value that may be chance.
    CHECK(worst_pair(std::vector{pair(6, 0.5, 0.45), pair(8, 0.3, 0.1)}, 0.1).elements[1] == 8);
    // Without such a pair, the one that may be farthest off.
    CHECK(worst_pair(std::vector{pair(6, 0.05, 0.01), pair(8, 0.02, 0.2)}, 0.1).elements[1] == 8);
    CHECK(worst_pair(std::vector{pair(6, 0.05, 0.01), pair(8, 0.02, 0.01)}, 0.1).elements[1] == 6);
}

TEST_CASE("forces beside a reference: rms, the worst atom, and energies up to a constant") {
    ForceComparison comparison;
    const Particles particles = water();
    std::vector<double> reference(9, 0.5), forces = reference;
    forces[4] += 0.3;
    forces[5] -= 0.4;
    comparison.add({10, {}, reference, 7}, "NVT", particles, 1, reference);
    comparison.add({20, {}, forces, 7.3}, "NVE", particles, 1, reference);
    comparison.finish();
    CHECK(comparison.worst_force == doctest::Approx(0.5));
    CHECK(comparison.worst_atom == "atom 1 (H) in step 20 of NVE");
    CHECK(comparison.force_rmse == doctest::Approx(std::sqrt(0.25 / 18)));
    CHECK(comparison.energy_rmse == doctest::Approx(0.05));
    REQUIRE(comparison.elements.size() == 2);
    CHECK(comparison.elements[0].atomic_number == 1);
    CHECK(comparison.elements[0].force_rmse == doctest::Approx(std::sqrt(0.25 / 12)));
    CHECK(comparison.elements[1].atomic_number == 8);
    CHECK(comparison.elements[1].force_rmse == 0);
    ForceComparison broken;
    forces[0] = NAN;
    broken.add({10, {}, forces, 7}, "NVT", particles, 1, reference);
    broken.add({20, {}, reference, 7}, "NVT", particles, 1, reference);
    broken.finish();
    CHECK(std::isnan(broken.worst_force));
    CHECK_FALSE(at_most("forces", broken.worst_force, 0.01, "eV/A").is_passed());
}

TEST_CASE("differences: the largest, means, and a NaN that stays in all of them") {
    Differences differences;
    CHECK(differences.largest() == 0);
    CHECK(differences.mean() == 0);
    for (double difference : {3.0, -4.0, 1.0}) differences.add(difference);
    CHECK(differences.largest() == 4);
    CHECK(differences.mean() == doctest::Approx(8.0 / 3));
    CHECK(differences.offset() == doctest::Approx(0).epsilon(1e-12));
    CHECK(differences.rms() == doctest::Approx(std::sqrt(26.0 / 3)));
    differences.add(NAN);
    differences.add(100);
    for (double figure : {differences.largest(), differences.mean(), differences.offset(), differences.rms()})
        CHECK(std::isnan(figure));

    ForceDifferences forces;
    const std::vector<int32_t> numbers = {8, 1};
    CHECK_FALSE(forces.add_frame(0, numbers, std::vector<double>(6, 1.0), std::vector<double>(6, 1.0)));
    CHECK(forces.worst().atom == -1);
    CHECK(forces.add_frame(1, numbers, std::vector<double>{0, 0, 0, 3, 4, 0}, std::vector<double>(6, 0.0)));
    CHECK_FALSE(forces.add_frame(2, numbers, std::vector<double>{0, 0, 0, 3, 0, 0}, std::vector<double>(6, 0.0)));
    CHECK(forces.worst().frame == 1);
    CHECK(forces.worst().atom == 1);
    CHECK(forces.worst().atomic_number == 1);
    CHECK(forces.worst().found == std::array<double, 3>{3, 4, 0});
    CHECK(forces.component_rms() == doctest::Approx(std::sqrt(34.0 / 18)));
    CHECK(forces.add_frame(3, numbers, std::vector<double>{0, NAN, 0, 9, 9, 9}, std::vector<double>(6, 0.0)));
    CHECK_FALSE(forces.add_frame(4, numbers, std::vector<double>(6, 99.0), std::vector<double>(6, 0.0)));
    CHECK(forces.worst().frame == 3);
    CHECK(forces.worst().atom == 0);
    CHECK(std::isnan(forces.lengths().largest()));
}

TEST_CASE("dynamics that breaks says when and who was closest") {
    SessionOptions session_options;
    session_options.device = "cpu";
    session_options.thread_count = 1;
    Session session(make_analytic_model(), session_options);
    Particles particles = water();
    set_temperature(particles, 300, 1);
    RunOptions options;
    options.phase = "NVE";
    options.step_count = 500;
    options.time_step = 0.5;
    options.highest_temperature = 4000;
    options.snapshot_interval = 100;
    const Run good = run_dynamics(session, particles, options);
    CHECK_FALSE(good.blow_up);
    CHECK(good.total_energy.size() == 500);
    CHECK(good.snapshots.size() == 5);
    CHECK(good.momentum_change < 1e-10);
    CHECK(good.angular_momentum_change < 1e-10);
    options.time_step = 30;
    const Run broken = run_dynamics(session, particles, options);
    REQUIRE(broken.blow_up);
    CHECK(broken.blow_up->sentence().find("NVE broke at step ") == 0);
    CHECK(broken.blow_up->reason.find("the temperature rose to ") == 0);
    CHECK(broken.blow_up->step <= 500);
    CHECK(closest_pair(particles) == "atoms 0 (O) and 1 (H), 0.960 A apart");
    CHECK(closest_pair(particles_of({8, 8}, {0, 0, 0, 9, 0, 0})) == "no two atoms are within 3 A");
}

TEST_CASE("built-in systems are chosen by what the model knows") {
    const auto names = [](const std::vector<TestSystem>& systems) {
        std::vector<std::string> list;
        for (const TestSystem& system : systems) list.push_back(system.name);
        return list;
    };
    const std::vector<int> organic = {1, 6, 7, 8};
    CHECK(names(default_systems(organic)) ==
          std::vector<std::string>{"water", "water-box", "ethanol", "benzene", "alanine-dipeptide", "diamond"});
    CHECK(names(default_systems({14})) == std::vector<std::string>{"silicon"});
    CHECK(names(default_systems({1, 8})) == std::vector<std::string>{"water", "water-box"});
    CHECK_THROWS_WITH_AS(default_systems({79}), doctest::Contains("--systems"), Error);
    CHECK_THROWS_WITH_AS(chosen_systems({"silicon"}, organic), doctest::Contains("silicon has Si"), Error);
    CHECK_THROWS_WITH_AS(chosen_systems({"watr"}, organic),
                         doctest::Contains("'watr' is neither a file nor one of water, "), Error);
    const TestSystem box = chosen_systems({"water-box"}, organic)[0];
    CHECK(box.frame.atom_count() == 192);
    CHECK(find_bonds(box.frame.view()).size() == 128);
    const TestSystem diamond = chosen_systems({"diamond"}, organic)[0];
    CHECK(find_bonds(diamond.frame.view()).size() == 2 * 16);
}

TEST_CASE("a report escapes what it quotes, and plots have round ticks") {
    using namespace report;
    CHECK(html_escaped("<a href=\"x\">&'") == "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    CHECK_ALL_CLOSE(nice_ticks(-0.3, 4.1), (std::vector<double>{0, 1, 2, 3, 4}), 1e-12);
    CHECK_ALL_CLOSE(nice_ticks(0.0012, 0.0031), (std::vector<double>{0.0015, 0.002, 0.0025, 0.003}), 1e-12);
    CHECK(nice_ticks(1, 1).empty());
    CHECK_ALL_CLOSE(log_ticks(0.15, 3), (std::vector<double>{0.2, 0.5, 1, 2}), 1e-12);
    CHECK_ALL_CLOSE(log_ticks(0.5, 20000), (std::vector<double>{1, 10, 100, 1000, 10000}), 1e-9);
    CHECK_ALL_CLOSE(log_ticks(1.02, 1.31), nice_ticks(1.02, 1.31), 1e-12);
    CHECK(log_ticks(0, 1).empty());
    CHECK(svg({"empty", "", "", {Curve{"", {1, 2}, {NAN, NAN}}}}).empty());
    Report report;
    report.model = "<script>alert(1)</script>|x";
    SystemReport system;
    system.name = "a|b\n<b>";
    system.checks.push_back(at_most("drift", 3, 2, "eV"));
    system.blow_up = BlowUp{"NVT", 17, "the temperature rose to 9000 K", "atoms 0 (O) and 1 (H), 0.300 A apart"};
    report.systems.push_back(system);
    const std::string html = report_html(report), markdown = report_markdown(report);
    CHECK(html.find("<script") == std::string::npos);
    CHECK(html.find("&lt;script&gt;") != std::string::npos);
    CHECK(html.find(
              "NVT broke at step 17: the temperature rose to 9000 K; closest: atoms 0 (O) and 1 (H), 0.300 A apart") !=
          std::string::npos);
    CHECK(markdown.find("\\<script\\>") != std::string::npos);
    CHECK(markdown.find("a\\|b \\<b\\>") != std::string::npos);
    CHECK(verdict_sentence(report).find("FAIL: 1 of 1 system; ") == 0);
    CHECK(verdict_sentence(report).find("drift is 3 eV, allowed at most 2") != std::string::npos);
    CHECK(report_json(report)["verdict"] == "fail");
    CHECK(report_json(report)["systems"][0]["broke"]["step"] == 17);
}

TEST_CASE("reports count what is undecided apart from what passes and what fails") {
    Report report;
    SystemReport system;
    system.name = "water";
    system.checks = {at_most("contact", 1, 2, "A"), Check{"temperature", -12.7, "% off", -3, 3, 40.8, "O"}};
    suggest_steps(system.checks[1], 1000, 0.5);
    report.systems = {system};
    CHECK(report.is_passed());
    CHECK(
        verdict_sentence(report) ==
        "PASS: 1 checks of 1 system; 1 undecided, for which this run is too short: about --steps 520000 would decide");
    CHECK(verdict_text(system) == "pass, 1 undecided");
    const nlohmann::json json = report_json(report);
    CHECK(json["verdict"] == "pass");
    for (const nlohmann::json& counts : {json, json["systems"][0]}) {
        CHECK(counts["passed"] == 1);
        CHECK(counts["failed"] == 0);
        CHECK(counts["undecided"] == 1);
        CHECK(counts["deciding_steps"] == 520'000);
    }
    const nlohmann::json checks = json["systems"][0]["checks"];
    CHECK(checks[0]["verdict"] == "pass");
    CHECK(checks[0]["deciding_steps"].is_null());
    CHECK(checks[1]["verdict"] == "undecided");
    CHECK(checks[1]["deciding_steps"] == 520'000);
    CHECK(report_markdown(report).find("| undecided | O; about 520000 steps would decide |") != std::string::npos);
    CHECK(report_markdown(report).find("## water: pass, 1 undecided") != std::string::npos);
    CHECK(report_html(report).find(
              "<td class=\"undecided\">undecided</td><td class=\"note\">O; about 520000 steps would decide</td>") !=
          std::string::npos);

    report.systems[0].checks.push_back(at_most("drift", 3, 2, "eV"));
    CHECK_FALSE(report.is_passed());
    CHECK(verdict_sentence(report) ==
          "FAIL: 1 of 1 system; water: drift is 3 eV, allowed at most 2; 1 undecided, for which this run is too short: "
          "about --steps 520000 would decide");
    CHECK(report_json(report)["failed"] == 1);
}

TEST_CASE("a report shows the other model beside the model, and its failures do not count") {
    Report report;
    report.against = "teacher";
    SystemReport system;
    system.name = "water";
    system.drift = EnergyDrift{{}, 1, 0, 0, 0.5};
    system.checks = {at_most(kContactCheck, 1, 2, ""), Check{kOrderCheck, 2, "", 1.5, 2.5, 0, ""},
                     at_most("forces", 1, 2, "")};
    OtherDynamics& other = system.other.emplace();
    other.step_count = 700;
    other.findings.drift = EnergyDrift{{}, 1, 0, 0, 0.7};
    other.findings.checks = {at_most(kContactCheck, 3, 2, ""), Check{kOrderCheck, 1.9, "", 1.5, 2.5, 0, ""}};
    other.findings.energy = {"total energy", {0, 1}, {0, 3}};
    other.findings.temperatures = {{"NVT", {0, 1}, {300, 310}}};
    other.pair_differences = {{{1, 8}, 0.2, 0.1, -0.1, 1.85}};
    report.systems = {system};
    CHECK(report.is_passed());
    const std::vector<SideBySide> rows = side_by_side(system);
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].name == kContactCheck);
    CHECK(rows[0].model == "1");
    CHECK(rows[0].other == "3");
    CHECK(rows[0].verdict == Verdict::failed);
    CHECK(rows[2].name == "fluctuation of the energy");
    CHECK(rows[2].other == "0.7 meV/atom");
    CHECK_FALSE(rows[2].verdict);
    CHECK(other_sentence(system) ==
          "the other model, 700 steps from the same start with the same random numbers: it fails 1 check itself");
    const nlohmann::json json = report_json(report), against = json["systems"][0]["against"];
    CHECK(json["verdict"] == "pass");
    CHECK(against["steps"] == 700);
    CHECK(against["checks"][0]["verdict"] == "fail");
    CHECK(against["pair_distances"][0]["pair"] == "H-O");
    CHECK(against["pair_distances"][0]["shift_angstrom"] == 0.2);
    CHECK(against["curves"]["energy"]["y"] == nlohmann::json({0, 3}));
    CHECK(json["recommendations"].size() > 1);
    const std::string html = report_html(report), markdown = report_markdown(report);
    CHECK(markdown.find("| closest contact | 1 | 3 | fail |") != std::string::npos);
    CHECK(markdown.find("- other model: judge differences") != std::string::npos);
    CHECK(html.find("<td>closest contact</td><td>1</td><td>3</td><td class=\"fail\">fail</td>") != std::string::npos);
    CHECK(html.find("<li><b>other model</b>: judge differences") != std::string::npos);
    CHECK(html.find("class=\"curve overlay\"") != std::string::npos);  // a curve that only the other model has
    CHECK(html.find("dashed: the other model") != std::string::npos);
    CHECK(html.find("</i>this model</span>") != std::string::npos);

    report.systems[0].other->findings.blow_up = BlowUp{"NVT", 3, "it <b>", "none"};
    CHECK(other_sentence(report.systems[0]).find(": it broke itself, NVT broke at step 3: it <b>") !=
          std::string::npos);
    CHECK(report.is_passed());
    CHECK(report_html(report).find("<b>;") == std::string::npos);
    report.systems[0].other.reset();
    CHECK(report_json(report)["systems"][0]["against"].is_null());
    CHECK(side_by_side(report.systems[0]).empty());
    CHECK(report_html(report).find("overlay\"") == std::string::npos);
}
