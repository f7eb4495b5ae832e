// SPDX-License-Identifier: MIT
#include "tools/validate/validation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/elements.h"
#include "core/error.h"
#include "dynamics/units.h"
#include "tools/validate/structure_check.h"
#include "tools/validate/temperature_check.h"

namespace mlff::validate {
namespace {

constexpr int kRelaxationSteps = 100;
constexpr double kFriction = 0.05;  // 1/fs: strong, to get many independent samples in a short run
constexpr uint64_t kVelocitySeed = 1, kBathSeed = 2;
constexpr size_t kPlotPoints = 400;
constexpr int64_t kSnapshots = 100, kComparedSnapshots = 10;  // per run

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

// Values at start + spacing, start + 2 spacing, ...
Curve thinned(const std::vector<double>& values, double start, double spacing, const std::string& label) {
    Curve curve{label, {}, {}};
    const size_t stride = (values.size() + kPlotPoints - 1) / kPlotPoints;
    for (size_t i = 0; i < values.size(); i += stride) {
        curve.x.push_back(start + spacing * static_cast<double>(i + 1));
        curve.y.push_back(values[i]);
    }
    return curve;
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
        run_dynamics_of_all();
        plot_runs();
        check_runs();
        compare_with_references();
        return std::move(report_);
    }

private:
    int64_t bath_steps() const {
        return std::max<int64_t>(200, static_cast<int64_t>(kBathPart * static_cast<double>(settings_.step_count)));
    }
    int64_t fine_steps() const { return 2 * std::max<int64_t>(100, settings_.step_count / 20); }

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

    void tell(const std::string& phase, int64_t steps_done) const {
        const auto all = static_cast<double>(bath_steps() + fine_steps() + settings_.step_count);
        if (on_progress_) on_progress_(phase, static_cast<double>(steps_done) / all);
    }

    Run dynamics(const Particles& start, const std::string& phase, int64_t steps, double time_step, bool has_bath) {
        RunOptions options;
        options.phase = phase;
        options.step_count = steps;
        options.time_step = time_step;
        if (has_bath) options.bath = LangevinBath{settings_.temperature, kFriction, kBathSeed};
        options.snapshot_interval = std::max<int64_t>(1, steps / kSnapshots);
        options.highest_temperature = 10 * settings_.temperature + 1000;
        options.on_step = [this, phase](int64_t step) { tell(phase, steps_before_ + step); };
        Run run = run_dynamics(sessions_.model, start, options);
        steps_before_ += steps;
        if (run.blow_up) report_.blow_up = run.blow_up;
        return run;
    }

    // Each run starts from the end of the previous one. Without a bath the rigid motion is removed.
    void run_dynamics_of_all() {
        Particles particles = start_;
        tell("relaxation", 0);
        report_.blow_up = relax(sessions_.model, particles, kRelaxationSteps);
        if (report_.blow_up) return;
        set_temperature(particles, 2 * settings_.temperature, kVelocitySeed);  // half of it becomes potential energy
        bath_run_ = dynamics(particles, "NVT", bath_steps(), settings_.time_step, true);
        const auto is_early = [&](const Snapshot& s) {
            return static_cast<double>(s.step) <= kEquilibrationPart * static_cast<double>(bath_steps());
        };
        if (!report_.blow_up) std::erase_if(bath_run_.snapshots, is_early);
        if (report_.blow_up) return;
        particles = bath_run_.last;
        remove_momentum(particles);
        if (!report_.is_periodic) remove_rotation(particles);
        fine_run_ = dynamics(particles, "NVE with half the time step", fine_steps(), 0.5 * settings_.time_step, false);
        if (report_.blow_up) return;
        free_run_ = dynamics(particles, "NVE", settings_.step_count, settings_.time_step, false);
    }

    void plot_runs() {
        constexpr double kPicoseconds = 1e-3, kMilli = 1e3;
        const auto atoms = static_cast<double>(report_.atom_count);
        std::vector<double> change;
        for (double energy : free_run_.total_energy)
            change.push_back(kMilli * (energy - free_run_.total_energy.front()) / atoms);
        if (!change.empty()) report_.energy = thinned(change, 0, kPicoseconds * free_run_.time_step, "total energy");
        double time = 0;  // one run after the other
        for (const Run* run : {&bath_run_, &free_run_}) {
            std::vector<double> temperatures;
            const double degrees = 3 * atoms - (run->friction > 0                               ? 0
                                                : report_.is_periodic || report_.atom_count < 3 ? 3
                                                                                                : 6);
            for (double kinetic : run->kinetic_energy) temperatures.push_back(2 * kinetic / (degrees * kBoltzmann));
            if (!temperatures.empty())
                report_.temperatures.push_back(thinned(temperatures, time, kPicoseconds * run->time_step, run->phase));
            time += kPicoseconds * run->time_step * static_cast<double>(temperatures.size());
        }
    }

    void check_runs() {
        const auto append = [&](const std::vector<Check>& checks) {
            report_.checks.insert(report_.checks.end(), checks.begin(), checks.end());
        };
        const bool has_bath_run = !bath_run_.phase.empty() && !bath_run_.blow_up,
                   has_free_run = !free_run_.phase.empty() && !free_run_.blow_up;
        if (has_free_run) {
            report_.drift = energy_drift(free_run_, settings_.temperature);
            append(
                check_energy(free_run_, fine_run_, report_.is_periodic, settings_.temperature, settings_.thresholds));
        }
        if (has_bath_run) append(check_temperature(bath_run_, settings_.temperature, settings_.thresholds));
        std::vector<Snapshot> snapshots = bath_run_.snapshots;
        snapshots.insert(snapshots.end(), free_run_.snapshots.begin(), free_run_.snapshots.end());
        const Distances in_bath = measure_distances(start_, bath_run_.snapshots),
                        free = measure_distances(start_, free_run_.snapshots);
        append(check_structure(start_, snapshots, in_bath, free, settings_.thresholds));
        const Distances& shown = free.snapshot_count > 0 ? free : in_bath;
        for (const PairHistogram& histogram : shown.histograms) {
            Curve curve{concat(element_symbol(histogram.elements[0]), "-", element_symbol(histogram.elements[1])),
                        {},
                        radial_distribution(histogram, shown, start_)};
            for (size_t bin = 0; bin < curve.y.size(); ++bin)
                curve.x.push_back(kHistogramBin * (static_cast<double>(bin) + 0.5));
            report_.distances.push_back(std::move(curve));
        }
    }

    void compare_with_references() {
        std::vector<ComparedSnapshot> compared;
        for (const Run* run : {&bath_run_, &free_run_}) {
            const auto count = static_cast<int64_t>(run->snapshots.size());
            for (int64_t i = 0; i < std::min(count, kComparedSnapshots); ++i)
                compared.push_back(
                    {&run->snapshots[static_cast<size_t>((i + 1) * count / std::min(count, kComparedSnapshots) - 1)],
                     run->phase});
        }
        if (compared.empty()) return;
        tell("reference", steps_before_);
        const Thresholds& limits = settings_.thresholds;
        report_.path = compare_forces(sessions_.reference, start_, compared);
        report_.checks.push_back(at_most("forces against the fp64 reference, worst atom", report_.path->worst_force,
                                         limits.path_force_eV_per_A, "eV/A", report_.path->worst_atom));
        if (!sessions_.against) return;
        report_.against = compare_forces(*sessions_.against, start_, compared);
        report_.checks.push_back(at_most(
            "forces against the other model, rms", report_.against->force_rmse, limits.against_force_rmse_eV_per_A,
            "eV/A", concat("worst: ", report_.against->worst_atom, ", ", report_.against->worst_force, " eV/A")));
        report_.checks.push_back(at_most("energies against the other model, rms", 1e3 * report_.against->energy_rmse,
                                         limits.against_energy_rmse_meV_per_atom, "meV/atom"));
    }

    Sessions sessions_;
    const Settings& settings_;
    const OnProgress& on_progress_;
    Particles start_;
    SystemReport report_;
    Run bath_run_, fine_run_, free_run_;  // empty phase: not started
    int64_t steps_before_ = 0;
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
