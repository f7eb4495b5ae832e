// SPDX-License-Identifier: MIT
#include "tools/validate/validation.h"

#include <algorithm>
#include <map>

#include "core/elements.h"
#include "core/error.h"
#include "tools/validate/check_names.h"

namespace mlff::validate {
namespace {

constexpr int64_t kComparedSnapshots = 10;  // per run

// Hill order: carbon, then hydrogen, then alphabetical; without carbon, alphabetical.
std::string formula_of(const std::vector<int32_t>& atomic_numbers) {
    std::map<std::string, int> counts;
    for (int32_t z : atomic_numbers) ++counts[std::string(element_symbol(z))];
    std::string formula;
    const auto take = [&](const std::string& symbol) {
        const auto found = counts.extract(symbol);
        if (found) formula += symbol + (found.mapped() > 1 ? std::to_string(found.mapped()) : "");
    };
    if (counts.contains("C")) take("C"), take("H");
    while (!counts.empty()) take(std::string(counts.begin()->first));
    return formula;
}

class SystemValidation {
public:
    SystemValidation(const Sessions& sessions, const TestSystem& system, const Settings& settings,
                     const OnProgress& on_progress)
        : sessions_(sessions), settings_(settings), on_progress_(on_progress), start_(system.frame.view()) {
        report_.name = system.name;
        report_.formula = formula_of(start_.atomic_numbers);
        report_.atom_count = start_.atom_count();
        report_.is_periodic = start_.environment.is_periodic();
        check_input();
    }

    SystemReport run() {
        std::optional<ModelRuns> other;
        if (sessions_.against && settings_.against_step_count > 0) other = run_other();
        const ModelRuns runs = run_model(sessions_.model, start_, settings_, on_progress_);
        static_cast<Findings&>(report_) = findings_of(runs, start_, settings_.temperature, settings_.thresholds);
        compare_with_references(runs);
        if (other) compare_dynamics(runs, *other);
        return std::move(report_);
    }

private:
    // A system that a model cannot evaluate at all is bad input, not a finding.
    void check_input() {
        const SystemView system = start_.view();
        double energy = 0;
        Results results;
        results.outputs.energy = &energy;
        for (Session* session : {&sessions_.model, &sessions_.reference, sessions_.against}) try {
                if (session) session->evaluate_unchecked({&system, 1}, {&results, 1});
            } catch (const Error& error) {
                fail(error.status(), "system ", report_.name, ": ", error.what());
            }
    }

    ModelRuns run_other() {
        ModelRunOptions options = settings_;
        options.step_count = settings_.against_step_count;
        return run_model(*sessions_.against, start_, options, [&](const std::string& phase, double part) {
            if (on_progress_) on_progress_("other model, " + phase, part);
        });
    }

    void compare_with_references(const ModelRuns& runs) {
        std::vector<ComparedSnapshot> compared;
        for (const Run* run : {&runs.bath, &runs.free}) {
            const auto count = static_cast<int64_t>(run->snapshots.size());
            for (int64_t i = 0; i < std::min(count, kComparedSnapshots); ++i)
                compared.push_back(
                    {&run->snapshots[static_cast<size_t>((i + 1) * count / std::min(count, kComparedSnapshots) - 1)],
                     run->phase});
        }
        if (compared.empty()) return;
        if (on_progress_) on_progress_("reference", 1);
        const Thresholds& limits = settings_.thresholds;
        report_.path = compare_forces(sessions_.reference, start_, compared);
        report_.checks.push_back(at_most(kReferenceForceCheck, report_.path->worst_force, limits.path_force_eV_per_A,
                                         "eV/A", report_.path->worst_atom));
        if (!sessions_.against) return;
        report_.against = compare_forces(*sessions_.against, start_, compared);
        report_.checks.push_back(
            at_most(kOtherForceCheck, report_.against->force_rmse, limits.against_force_rmse_eV_per_A, "eV/A",
                    report_.against->worst_atom.empty()
                        ? "the same on every atom"
                        : concat("worst: ", report_.against->worst_atom, ", ", report_.against->worst_force, " eV/A")));
        report_.checks.push_back(at_most(kOtherEnergyCheck, 1e3 * report_.against->energy_rmse,
                                         limits.against_energy_rmse_meV_per_atom, "meV/atom"));
    }

    void compare_dynamics(const ModelRuns& runs, const ModelRuns& other_runs) {
        OtherDynamics& other = report_.other.emplace();
        other.step_count = settings_.against_step_count;
        other.findings = findings_of(other_runs, start_, settings_.temperature, settings_.thresholds);
        if (!runs.has_bath() || !other_runs.has_bath()) return;
        other.pair_differences = pair_differences(start_, runs.bath.snapshots, other_runs.bath.snapshots);
        if (other.pair_differences.empty()) return;  // no two atoms are close in either
        const double limit = settings_.thresholds.against_rdf_shift_angstrom;
        const PairDifference& worst = worst_pair(other.pair_differences, limit);
        Check check = at_most(kOtherDistancesCheck, worst.shift, limit, "A", difference_text(worst));
        check.uncertainty = worst.uncertainty;
        suggest_steps(check, static_cast<double>(std::min(settings_.step_count, other.step_count)), 0.5);
        report_.checks.push_back(check);
    }

    Sessions sessions_;
    const Settings& settings_;
    const OnProgress& on_progress_;
    Particles start_;
    SystemReport report_;
};

}  // namespace

void VerdictCounts::add(const Check& check) {
    const Verdict verdict = check.verdict();
    ++(verdict == Verdict::passed ? passed : verdict == Verdict::failed ? failed : undecided);
    if (verdict == Verdict::undecided) deciding_steps = std::max(deciding_steps, check.deciding_steps);
}

void VerdictCounts::add(const VerdictCounts& others) {
    passed += others.passed, failed += others.failed, undecided += others.undecided;
    deciding_steps = std::max(deciding_steps, others.deciding_steps);
}

VerdictCounts SystemReport::counts() const {
    VerdictCounts counts;
    for (const Check& check : checks) counts.add(check);
    return counts;
}

bool SystemReport::is_passed() const { return !blow_up && !checks.empty() && counts().failed == 0; }

VerdictCounts Report::counts() const {
    VerdictCounts counts;
    for (const SystemReport& system : systems) counts.add(system.counts());
    return counts;
}

bool Report::is_passed() const {
    return !systems.empty() &&
           std::all_of(systems.begin(), systems.end(), [](const SystemReport& system) { return system.is_passed(); });
}

SystemReport validate_system(const Sessions& sessions, const TestSystem& system, const Settings& settings,
                             const OnProgress& on_progress) {
    return SystemValidation(sessions, system, settings, on_progress).run();
}

}  // namespace mlff::validate
