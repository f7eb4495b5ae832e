// SPDX-License-Identifier: MIT
#include "tools/validate/recommendations.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>

#include "core/elements.h"
#include "core/error.h"
#include "tools/validate/check_names.h"
#include "tools/validate/report.h"

namespace mlff::validate {
namespace {

using List = std::vector<Recommendation>;

std::string digits(double value, int count) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*g", count, value);
    return text;
}

// NaN is the largest error.
double as_error(double value) { return std::isnan(value) ? INFINITY : value; }

const Check* find_check(const std::vector<Check>& checks, const std::string& name) {
    const auto found = std::find_if(checks.begin(), checks.end(), [&](const Check& c) { return c.name == name; });
    return found == checks.end() ? nullptr : &*found;
}

// A check of one system.
struct Finding {
    const SystemReport* system = nullptr;
    const Check* check = nullptr;
};

std::vector<Finding> failures(const Report& report, std::initializer_list<const char*> names) {
    std::vector<Finding> found;
    for (const SystemReport& system : report.systems)
        for (const char* name : names)
            if (const Check* check = find_check(system.checks, name); check && check->verdict() == Verdict::failed)
                found.push_back({&system, check});
    return found;
}

// "water: energy drift is 300 meV/atom/ns, allowed -200 to 200".
std::string fact(const Finding& finding) {
    return concat(finding.system->name, ": ", finding.check->name, " is ", value_text(*finding.check), ", allowed ",
                  range_text(*finding.check));
}

// The same of the first failure, how many more there are, and what the other model does in this check.
std::string facts(const std::vector<Finding>& found) {
    std::string text = fact(found.front());
    if (found.size() > 1) text += concat("; and ", found.size() - 1, " more of this kind");
    const auto& other = found.front().system->other;
    const Check* others = other ? find_check(other->findings.checks, found.front().check->name) : nullptr;
    if (!others) return text;
    return text + (others->verdict() == Verdict::failed
                       ? "; the other model fails this too, with " + value_text(*others) +
                             ": look at the structure and the settings first"
                       : "; the other model has " + value_text(*others));
}

// Rounded down to a length that one would type.
double round_step(double step) {
    const double unit = step >= 0.1 ? 0.05 : 0.5 * std::pow(10.0, std::floor(std::log10(step)));
    return unit * std::floor(step / unit + 1e-9);
}
std::string step_text(double step) { return digits(step, 4) + " fs"; }
std::string half_step(const Report& report) { return digits(0.5 * report.settings.time_step, 4); }

void add_broken_runs(const Report& report, List& list) {
    const SystemReport* first = nullptr;
    std::string more;
    for (const SystemReport& system : report.systems) {
        if (!system.blow_up) continue;
        if (first) more += concat(more.empty() ? "; it broke also in " : ", ", system.name);
        if (!first) first = &system;
    }
    if (first) {
        std::string others;
        if (first->other)
            others = first->other->findings.blow_up
                         ? "; the other model breaks as well, so look at the structure and the settings first"
                         : "; the other model runs through";
        list.push_back({"stability",
                        concat("do not run ", first->name, " with this model: ", first->blow_up->sentence(),
                               ". Try --dt ", half_step(report),
                               "; if it breaks again, the model lacks such structures in its training", others, more)});
    }
    if (const auto found = failures(report, {kMomentumCheck, kAngularMomentumCheck}); !found.empty())
        list.push_back({"stability", concat("run mlff verify before anything else, because forces that do not add up "
                                            "are a fault of the model or of this machine: ",
                                            facts(found))});
}

// The system with the shortest period; nullptr if none is known.
const SystemReport* fastest_system(const Report& report) {
    const SystemReport* fastest = nullptr;
    for (const SystemReport& system : report.systems) {
        if (!system.fastest || !std::isfinite(system.fastest->period)) continue;
        if (!fastest || system.fastest->period < fastest->fastest->period) fastest = &system;
    }
    return fastest;
}

double run_femtoseconds(const Report& report) {
    return report.settings.time_step * static_cast<double>(report.settings.step_count);
}

// Then other sentences advise a shorter step.
bool has_step_trouble(const Report& report) {
    return std::any_of(report.systems.begin(), report.systems.end(),
                       [](const SystemReport& system) { return system.blow_up.has_value(); }) ||
           !failures(report, {kTemperatureCheck, kEquipartitionCheck, kTemperatureShapeCheck}).empty();
}

void add_time_step(const Report& report, List& list) {
    const double step = report.settings.time_step;
    const auto add = [&](const std::string& sentence) { list.push_back({"time step", sentence}); };
    if (const auto found = failures(report, {kOrderCheck}); !found.empty()) {
        add(concat("try a shorter time step, --dt ", half_step(report), ", because the energy does not fluctuate with ",
                   "its square (", facts(found),
                   "); if the order stays wrong, forces are not the slope of the energy, ",
                   "or they are noisy: compare --precision fp64"));
        return;
    }
    const SystemReport* fastest = fastest_system(report);
    if (!fastest) return;  // no run in a bath: other sentences say so
    const double period = fastest->fastest->period, longest = round_step(period / kStepsPerPeriod);
    const std::string reason = concat("the fastest vibrations, of ", element_symbol(fastest->fastest->atomic_number),
                                      " in ", fastest->name, ", have a period of about ", digits(period, 2), " fs, or ",
                                      digits(period / step, 2), " steps, and ", kStepsPerPeriod, " are enough");
    if (period < kStepsPerPeriod * step) {
        add(concat("take a shorter time step, --dt ", digits(longest, 4), ": ", reason));
        return;
    }
    if (const auto found = failures(report, {kDriftCheck, kDriftOverRunCheck}); !found.empty()) {
        add(concat("try a shorter time step, --dt ", half_step(report), ", because energy is lost or gained (",
                   facts(found), "); if the drift does not fall to about a quarter, it comes from the model"));
        return;
    }
    if (has_step_trouble(report)) return;
    if (longest < kWorthwhileStepFactor * step) {
        add(concat("keep the time step of ", step_text(step), ": ", reason));
    } else if (run_femtoseconds(report) < kLeastFemtosecondsForStep) {
        add(concat("keep the time step of ", step_text(step), " for now: ", reason, ", but it takes --steps ",
                   static_cast<int64_t>(std::ceil(kLeastFemtosecondsForStep / step)), " to know this well"));
    } else {
        const double proposed = std::min(longest, kMostStepFactor * step);
        add(concat("a longer time step would do, about ", step_text(proposed), ": ", reason, ". Check it with --dt ",
                   digits(proposed, 4)));
    }
}

void add_precision(const Report& report, List& list) {
    const SystemReport* worst = nullptr;
    for (const SystemReport& system : report.systems) {
        if (!system.path) continue;
        if (!worst || as_error(system.path->worst_force) > as_error(worst->path->worst_force)) worst = &system;
    }
    if (!worst) return;
    const double error = worst->path->worst_force, limit = report.settings.thresholds.path_force_eV_per_A;
    const std::string fact =
        concat("forces differ by up to ", digits(error, 2), " eV/A from those in double precision (", worst->name, ", ",
               worst->path->worst_atom, "), and ", limit, " are allowed");
    const auto add = [&](const std::string& sentence) { list.push_back({"precision", sentence}); };
    const bool is_double = report.precision == "fp64";
    if (!(error <= limit))
        add(is_double ? "run mlff verify: the runs were in fp64, but " + fact : "use --precision fp64: " + fact);
    else if (is_double)
        add("the runs were in fp64: validate once with --precision mixed, which is faster, and is compared with double "
            "precision in the same way");
    else if (error > limit / kPrecisionReserve)
        add(concat(report.precision, " precision passes, but use --precision fp64 where small differences of energy ",
                   "matter: ", fact));
    else
        add(concat(report.precision, " precision is enough: ", fact));
}

// Not to a Python program, nor a second time.
bool can_add_repulsion(const std::string& model) {
    const std::string terms = "+" + model + "+";
    return !model.starts_with("python:") && terms.find("+zbl+") == std::string::npos;
}

void add_failed_kinds(const Report& report, List& list) {
    if (const auto found = failures(report, {kTemperatureCheck, kEquipartitionCheck, kTemperatureShapeCheck});
        !found.empty())
        list.push_back({"temperature", concat("try --dt ", half_step(report), ", because long steps make fast atoms ",
                                              "seem cold: ", facts(found))});
    if (const auto found = failures(report, {kContactCheck}); !found.empty())
        list.push_back(
            {"structure",
             concat("add compressed structures to the training set",
                    can_add_repulsion(report.model) ? concat(", or a repulsion, --model ", report.model, "+zbl")
                                                    : std::string(),
                    ", because atoms come too close (", facts(found), "): ", found.front().check->note)});
    if (const auto found = failures(report, {kBondMeanCheck, kBondStretchCheck}); !found.empty())
        list.push_back({"structure", concat("look at this bond, and add structures around it to the training set if ",
                                            "it should hold: ", found.front().check->note, " (", facts(found), ")")});
    if (const auto found = failures(report, {kFreeDistancesCheck}); !found.empty())
        list.push_back({"structure", concat("run this system with --long to see where it goes, because it changes ",
                                            "while it is observed (", facts(found), ")")});
}

// The element with the largest error; nullptr if there is none.
const ElementError* worst_element(const ForceComparison& comparison) {
    const auto worst = std::max_element(
        comparison.elements.begin(), comparison.elements.end(),
        [](const auto& one, const auto& other) { return as_error(one.force_rmse) < as_error(other.force_rmse); });
    return worst == comparison.elements.end() ? nullptr : &*worst;
}

void add_forces_of_other(const Report& report, List& list) {
    const double limit = report.settings.thresholds.against_force_rmse_eV_per_A;
    const SystemReport* worst = nullptr;  // by its worst element
    for (const SystemReport& system : report.systems) {
        if (!system.against || !worst_element(*system.against)) continue;
        if (!worst ||
            as_error(worst_element(*system.against)->force_rmse) > as_error(worst_element(*worst->against)->force_rmse))
            worst = &system;
    }
    if (!worst) return;
    const ForceComparison& comparison = *worst->against;
    const ElementError& element = *worst_element(comparison);
    if (!(comparison.force_rmse <= limit) || !(element.force_rmse <= limit))
        list.push_back(
            {"training", concat("add structures like those of ", worst->name, " to the training set: forces on ",
                                element_symbol(element.atomic_number), " differ from the other model by ",
                                digits(element.force_rmse, 2), " eV/A rms (all atoms ",
                                digits(comparison.force_rmse, 2), ", allowed ", limit, "), worst ",
                                comparison.worst_atom, ", ", digits(comparison.worst_force, 2), " eV/A")});
    if (const auto found = failures(report, {kOtherEnergyCheck}); !found.empty())
        list.push_back({"training", concat("give energies more weight in training, because they do not follow the ",
                                           "other model (", fact(found.front()), ")")});
}

void add_dynamics_of_other(const Report& report, List& list) {
    if (const auto found = failures(report, {kOtherDistancesCheck}); !found.empty())
        list.push_back(
            {"structure", concat("look at the pairs of elements that are not where the other model has them, ",
                                 "and add structures with such distances to the training set: ", fact(found.front()),
                                 " (", found.front().check->note, ")")});
    for (const SystemReport& system : report.systems)
        if (system.other && system.other->findings.blow_up && !system.blow_up)
            list.push_back({"other model", concat("do not take the other model for the truth in ", system.name,
                                                  ": it breaks itself, ", system.other->findings.blow_up->sentence())});
    std::vector<Finding> failed;  // by the other model alone
    for (const SystemReport& system : report.systems) {
        if (!system.other) continue;
        for (const Check& check : system.other->findings.checks) {
            const Check* own = find_check(system.checks, check.name);
            if (check.verdict() == Verdict::failed && own && own->verdict() != Verdict::failed)
                failed.push_back({&system, &check});
        }
    }
    if (failed.empty()) return;
    const Finding& first = failed.front();
    list.push_back({"other model",
                    concat("judge differences from the other model with care, because it fails itself (", fact(first),
                           ", and this model has ", value_text(*find_check(first.system->checks, first.check->name)),
                           failed.size() > 1 ? concat("; and ", failed.size() - 1, " more)") : ")")});
}

// The options that decide a check. Dynamics of the other model has a length of its own.
std::string deciding_options(const Report& report, const Check& check) {
    if (check.name != kOtherDistancesCheck) return concat("--steps ", check.deciding_steps);
    const std::string other = concat("--against-steps ", check.deciding_steps);
    return check.deciding_steps <= report.settings.step_count ? other
                                                              : concat("--steps ", check.deciding_steps, " ", other);
}

void add_length(const Report& report, List& list) {
    const VerdictCounts counts = report.counts();
    if (counts.undecided == 0) return;
    Finding slowest, fastest;
    for (const SystemReport& system : report.systems)
        for (const Check& check : system.checks) {
            if (check.verdict() != Verdict::undecided) continue;
            if (!slowest.check || check.deciding_steps > slowest.check->deciding_steps) slowest = {&system, &check};
            if (!fastest.check || check.deciding_steps < fastest.check->deciding_steps) fastest = {&system, &check};
        }
    std::string sentence =
        concat("run longer if you need the ", counts.undecided,
               counts.undecided == 1 ? " check that is" : " checks that are", " undecided: about ",
               deciding_options(report, *slowest.check), " for ", slowest.check->name, " (", slowest.system->name, ")");
    if (fastest.check != slowest.check)
        sentence += concat(", ", deciding_options(report, *fastest.check), " for ", fastest.check->name, " (",
                           fastest.system->name, ")");
    constexpr size_t kFewAtoms = 50;
    if (slowest.system->atom_count < kFewAtoms)
        sentence += concat("; ", slowest.system->atom_count,
                           " atoms give few samples, a box with many molecules decides sooner");
    list.push_back({"length", sentence});
}

void add_use(const Report& report, List& list) {
    if (!report.is_passed()) {
        std::string names;
        for (const SystemReport& system : report.systems)
            if (!system.is_passed()) names += (names.empty() ? "" : ", ") + system.name;
        list.push_back(
            {"use", "do not use the model for systems like these before it is cleared up why they fail: " + names});
        return;
    }
    const double picoseconds = 1e-3 * run_femtoseconds(report);
    std::string sentence =
        concat("nothing failed in ", digits(picoseconds, 3), " ps at ", report.settings.temperature, " K");
    constexpr double kShortRun = 0.5;  // ps
    if (picoseconds < kShortRun) {
        list.push_back({"use", sentence + ", which is too short to recommend the model: take more --steps"});
        return;
    }
    sentence += ": use the model for systems like these";
    double largest = -1;
    for (const SystemReport& system : report.systems)
        if (system.against) largest = std::max(largest, system.against->force_rmse);
    if (largest >= 0)
        sentence += concat(", where its forces are within ", digits(largest, 2), " eV/A rms of the other model");
    constexpr double kLongRun = 50;  // ps, with --long
    if (picoseconds < kLongRun) sentence += "; before runs of nanoseconds, run --long once";
    list.push_back({"use", sentence});
}

}  // namespace

std::vector<Recommendation> recommendations(const Report& report) {
    List list;
    add_broken_runs(report, list);
    add_time_step(report, list);
    add_precision(report, list);
    add_failed_kinds(report, list);
    add_forces_of_other(report, list);
    add_dynamics_of_other(report, list);
    add_length(report, list);
    add_use(report, list);
    return list;
}

}  // namespace mlff::validate
