// SPDX-License-Identifier: MIT
// The rules behind the recommendations of `mlff validate`, on both sides of each limit.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tools/validate/check_names.h"
#include "tools/validate/recommendations.h"

using namespace mlff::validate;

namespace {

// Ten atoms, 10 ps, nothing wrong; the fastest vibration has this period, fs.
Report good_report(double period = 6) {
    Report report;
    report.model = "student";
    report.precision = "mixed";
    report.settings.step_count = 20'000;
    report.settings.time_step = 0.5;
    SystemReport system;
    system.name = "molecule";
    system.atom_count = 10;
    system.fastest = FastestVibration{period, 1};
    system.checks = {Check{kDriftCheck, 10, "meV/atom/ns", -200, 200, 5, ""},
                     Check{kOrderCheck, 2, "", 1.5, 2.5, 0, ""}};
    ForceComparison& path = system.path.emplace();
    path.worst_force = 2e-6;
    path.worst_atom = "atom 1 (H) in step 20 of NVE";
    report.systems = {system};
    return report;
}

// The sentences about one thing, one after the other.
std::string said(const Report& report, const std::string& about) {
    std::string text;
    for (const Recommendation& recommendation : recommendations(report))
        if (recommendation.about == about) text += recommendation.sentence + "\n";
    return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void add_check(Report& report, const char* name, double value, double upper, const std::string& note = "") {
    report.systems[0].checks.push_back(at_most(name, value, upper, "", note));
}

OtherDynamics& add_other(Report& report) {
    report.against = "teacher";
    return report.systems[0].other.emplace();
}

}  // namespace

TEST_CASE("every report has a recommendation, also an empty one") {
    CHECK(recommendations(Report{}).size() == 1);
    const auto list = recommendations(good_report());
    REQUIRE(list.size() == 3);
    CHECK(list[0].about == "time step");
    CHECK(list[1].about == "precision");
    CHECK(list[2].about == "use");
}

TEST_CASE("the time step follows from the fastest vibration") {
    CHECK(said(good_report(6), "time step") ==
          "keep the time step of 0.5 fs: the fastest vibrations, of H in molecule, have a period of about 6 fs, or 12 "
          "steps, and 10 are enough\n");
    CHECK(has(said(good_report(5), "time step"), "keep the time step"));
    CHECK(has(said(good_report(6.99), "time step"), "keep the time step"));  // 0.65 fs is not worth it
    CHECK(has(said(good_report(7.01), "time step"), "a longer time step would do, about 0.7 fs: "));
    CHECK(has(said(good_report(7.01), "time step"), "Check it with --dt 0.7\n"));
    CHECK(has(said(good_report(500), "time step"), "about 1 fs: "));  // not more than twice as long
    CHECK(has(said(good_report(4.9), "time step"), "take a shorter time step, --dt 0.45: "));
    CHECK(has(said(good_report(0.42), "time step"), "take a shorter time step, --dt 0.04: "));
    CHECK(has(said(good_report(0.0042), "time step"), "take a shorter time step, --dt 0.0004: "));  // never 0
    CHECK(said(good_report(NAN), "time step").empty());
    CHECK(said(good_report(INFINITY), "time step").empty());

    SUBCASE("the system with the shortest period decides") {
        Report report = good_report(20);
        report.systems.push_back(good_report(6).systems[0]);
        report.systems[1].name = "water";
        CHECK(has(said(report, "time step"), "keep the time step of 0.5 fs"));
        CHECK(has(said(report, "time step"), "of H in water"));
    }
    SUBCASE("a longer one needs a run that is long enough") {
        Report report = good_report(20);
        report.settings.step_count = 2000;
        CHECK(has(said(report, "time step"), "a longer"));
        report.settings.step_count = 1990;
        CHECK(has(said(report, "time step"), "keep the time step of 0.5 fs for now: "));
        CHECK(has(said(report, "time step"), ", but it takes --steps 2000 to know this well\n"));
    }
    SUBCASE("nothing is said where other sentences advise a shorter one") {
        Report report = good_report(20);
        add_check(report, kTemperatureCheck, 4, 5);
        CHECK(has(said(report, "time step"), "a longer"));
        report.systems[0].checks.back().value = 6;
        CHECK(said(report, "time step").empty());
        report = good_report(20);
        report.systems[0].blow_up = BlowUp{"NVE", 3, "it is hot", "none"};
        CHECK(said(report, "time step").empty());
    }
    SUBCASE("a wrong order comes first") {
        Report report = good_report(20);
        report.systems[0].checks[1].value = 1.4;
        CHECK(has(said(report, "time step"),
                  "try a shorter time step, --dt 0.25, because the energy does not fluctuate "));
        CHECK(has(said(report, "time step"), "is 1.4, allowed 1.5 to 2.5"));
        report.systems[0].checks[1].value = 1.6;
        CHECK(has(said(report, "time step"), "a longer"));
    }
    SUBCASE("a drift asks for a shorter one") {
        Report report = good_report(20);
        report.systems[0].checks[0].value = 300;
        CHECK(has(said(report, "time step"), "try a shorter time step, --dt 0.25, because energy is lost or gained "));
        report.systems[0].checks[0].value = 100;
        CHECK(has(said(report, "time step"), "a longer"));
    }
}

TEST_CASE("precision is judged by forces in double precision") {
    const auto with = [](double error, const char* precision) {
        Report report = good_report();
        report.precision = precision;
        report.systems[0].path->worst_force = error;
        return said(report, "precision");
    };
    CHECK(has(with(0.0009, "mixed"), "mixed precision is enough: forces differ by up to 0.0009 eV/A "));
    CHECK(has(with(0.0009, "mixed"), "(molecule, atom 1 (H) in step 20 of NVE), and 0.01 are allowed"));
    CHECK(has(with(0.0011, "mixed"), "mixed precision passes, but use --precision fp64 where "));
    CHECK(has(with(0.011, "mixed"), "use --precision fp64: forces"));
    CHECK(has(with(NAN, "mixed"), "use --precision fp64: forces"));
    CHECK(has(with(0.0009, "fp64"), "validate once with --precision mixed"));
    CHECK(has(with(0.011, "fp64"), "run mlff verify: the runs were in fp64, but "));
    Report report = good_report();
    report.systems.push_back(report.systems[0]);
    report.systems[1].path->worst_force = NAN;
    report.systems.push_back(report.systems[0]);
    CHECK(has(said(report, "precision"), "use --precision fp64"));
    for (SystemReport& system : report.systems) system.path.reset();
    CHECK(said(report, "precision").empty());
}

TEST_CASE("a run that breaks must not be repeated, and the other model says whose fault it is") {
    Report report = good_report();
    CHECK(said(report, "stability").empty());
    report.systems[0].blow_up = BlowUp{"NVE", 3, "it is hot", "none"};
    CHECK(has(said(report, "stability"),
              "do not run molecule with this model: NVE broke at step 3: it is hot; closest: none. Try --dt 0.25; "));
    CHECK_FALSE(has(said(report, "stability"), "the other model"));
    add_other(report);
    CHECK(has(said(report, "stability"), "; the other model runs through"));
    report.systems[0].other->findings.blow_up = report.systems[0].blow_up;
    CHECK(has(said(report, "stability"), "; the other model breaks as well, so look at "));
    report.systems.push_back(report.systems[0]);
    report.systems[1].name = "crystal";
    CHECK(has(said(report, "stability"), "; it broke also in crystal"));
    CHECK(has(said(report, "use"), "why they fail: molecule, crystal"));
}

TEST_CASE("each kind of failure has its own advice, and only if it fails") {
    const struct {
        const char *check, *about, *words;
    } rules[] = {
        {kMomentumCheck, "stability", "run mlff verify before anything else"},
        {kAngularMomentumCheck, "stability", "run mlff verify before anything else"},
        {kTemperatureCheck, "temperature", "try --dt 0.25, because long steps"},
        {kTemperatureShapeCheck, "temperature", "try --dt 0.25, because long steps"},
        {kEquipartitionCheck, "temperature", "try --dt 0.25, because long steps"},
        {kContactCheck, "structure", "or a repulsion, --model student+zbl, because atoms come too close"},
        {kBondMeanCheck, "structure", "look at this bond, and add structures around it"},
        {kBondStretchCheck, "structure", "look at this bond, and add structures around it"},
        {kFreeDistancesCheck, "structure", "run this system with --long to see where it goes"},
        {kOtherEnergyCheck, "training", "give energies more weight in training"},
        {kOtherDistancesCheck, "structure",
         "look at the pairs of elements that are not where the other model has them"},
    };
    for (const auto& rule : rules) {
        CAPTURE(rule.check);
        Report report = good_report();
        report.systems[0].against.emplace().elements = {{1, 0.01}};
        add_check(report, rule.check, 1.9, 2, "atoms 3 and 4");
        CHECK_FALSE(has(said(report, rule.about), rule.words));
        report.systems[0].checks.back().value = 2.1;
        CHECK(has(said(report, rule.about), rule.words));
        CHECK(has(said(report, rule.about), std::string("molecule: ") + rule.check + " is 2.1, allowed at most 2"));
        if (std::string(rule.about) == "structure" && rule.check != kFreeDistancesCheck)
            CHECK(has(said(report, rule.about), "atoms 3 and 4"));
        report.systems[0].checks.back().uncertainty = 0.5;  // undecided
        CHECK_FALSE(has(said(report, rule.about), rule.words));
    }
}

TEST_CASE("failures of one kind are counted, and compared with the other model") {
    Report report = good_report();
    add_check(report, kBondStretchCheck, 70, 60);
    report.systems.push_back(report.systems[0]);
    CHECK(has(said(report, "structure"), "; and 1 more of this kind"));
    OtherDynamics& other = add_other(report);
    other.findings.checks = {at_most(kBondStretchCheck, 65, 60, "")};
    CHECK(has(said(report, "structure"),
              "; the other model fails this too, with 65: look at the structure and the settings"));
    other.findings.checks[0].value = 12;
    CHECK(has(said(report, "structure"), "; the other model has 12"));
    CHECK_FALSE(has(said(report, "structure"), "fails this too"));
}

TEST_CASE("forces that differ from the other model name the element and the atom") {
    Report report = good_report();
    CHECK(said(report, "training").empty());
    ForceComparison& against = report.systems[0].against.emplace();
    against.force_rmse = 0.1;
    against.worst_force = 0.9;
    against.worst_atom = "atom 5 (N) in step 300 of NVE";
    against.elements = {{1, 0.05}, {7, 0.14}};
    CHECK(said(report, "training").empty());
    CHECK(has(said(report, "use"), "where its forces are within 0.1 eV/A rms of the other model"));
    against.elements[1].force_rmse = 0.16;  // one element may be worse than all together
    CHECK(has(said(report, "training"),
              "add structures like those of molecule to the training set: forces on N differ from the other model by "
              "0.16 eV/A rms (all atoms 0.1, allowed 0.15), worst atom 5 (N) in step 300 of NVE, 0.9 eV/A"));
    against.elements[0].force_rmse = NAN;
    CHECK(has(said(report, "training"), "forces on H differ"));
    against.elements[0].force_rmse = 0.05;
    report.systems.push_back(good_report().systems[0]);  // `against` is gone
    report.systems[1].name = "water";
    report.systems[1].against.emplace().elements = {{8, 0.3}};
    CHECK(has(said(report, "training"), "like those of water"));
}

TEST_CASE("what the other model fails itself is said, unless this model fails it as well") {
    Report report = good_report();
    add_check(report, kContactCheck, 1, 2);
    OtherDynamics& other = add_other(report);
    other.findings.checks = {at_most(kContactCheck, 1.5, 2, "")};
    CHECK(said(report, "other model").empty());
    other.findings.checks[0].value = 3;
    CHECK(said(report, "other model") ==
          "judge differences from the other model with care, because it fails itself (molecule: closest contact is 3, "
          "allowed at most 2, and this model has 1)\n");
    other.findings.checks.push_back(Check{kDriftCheck, 500, "meV/atom/ns", -200, 200, 5, ""});
    CHECK(has(said(report, "other model"), "; and 1 more)"));
    report.systems[0].checks.back().value = 4;
    CHECK_FALSE(has(said(report, "other model"), "closest contact"));
    other.findings.checks.clear();
    CHECK(said(report, "other model").empty());
    other.findings.blow_up = BlowUp{"NVT", 7, "it is hot", "none"};
    CHECK(has(said(report, "other model"),
              "do not take the other model for the truth in molecule: it breaks itself, NVT broke at step 7"));
    report.systems[0].blow_up = other.findings.blow_up;
    CHECK(said(report, "other model").empty());
}

TEST_CASE("undecided checks ask for steps, and small systems for a box") {
    Report report = good_report();
    CHECK(said(report, "length").empty());
    Check slow{kTemperatureCheck, 0, "% off", -3, 3, 9, ""}, quick{kEquipartitionCheck, 0, "% off", -5, 5, 9, ""};
    slow.deciding_steps = 500'000, quick.deciding_steps = 9000;
    report.systems[0].checks.push_back(slow);
    CHECK(has(said(report, "length"),
              "the 1 check that is undecided: about --steps 500000 for mean temperature in a bath (molecule); 10 atoms "
              "give few samples"));
    report.systems[0].checks.push_back(quick);
    CHECK(has(said(report, "length"),
              "the 2 checks that are undecided: about --steps 500000 for mean temperature in a bath (molecule), "
              "--steps 9000 for equipartition, worst element (molecule)"));
    report.systems[0].atom_count = 50;
    CHECK_FALSE(has(said(report, "length"), "few samples"));
}

TEST_CASE("how to go on depends on the verdict and on the length of the run") {
    Report report = good_report();
    CHECK(said(report, "use") ==
          "nothing failed in 10 ps at 300 K: use the model for systems like these; before runs of nanoseconds, run "
          "--long once\n");
    report.settings.step_count = 99'000;
    CHECK(has(said(report, "use"), "--long"));
    report.settings.step_count = 100'000;
    CHECK_FALSE(has(said(report, "use"), "--long"));
    add_check(report, kContactCheck, 3, 2);
    CHECK(said(report, "use") ==
          "do not use the model for systems like these before it is cleared up why they fail: molecule\n");
}
