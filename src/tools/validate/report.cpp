// SPDX-License-Identifier: MIT
#include "tools/validate/report.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/bytes_text.h"
#include "core/elements.h"
#include "core/error.h"
#include "tools/validate/check_names.h"
#include "tools/validate/recommendations.h"
#include "tools/validate/structure_check.h"

namespace mlff::validate {
namespace {

using Json = nlohmann::json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json check_json(const Check& check) {
    return {{"name", check.name},
            {"value", number(check.value)},
            {"unit", check.unit},
            {"lower", number(check.lower)},
            {"upper", number(check.upper)},
            {"uncertainty", number(check.uncertainty)},
            {"note", check.note},
            {"verdict", verdict_word(check.verdict())},
            {"deciding_steps", check.deciding_steps > 0 ? Json(check.deciding_steps) : Json()}};
}

void add_counts(Json& json, const VerdictCounts& counts) {
    json.update({{"passed", counts.passed},
                 {"failed", counts.failed},
                 {"undecided", counts.undecided},
                 {"deciding_steps", counts.undecided > 0 ? Json(counts.deciding_steps) : Json()}});
}

Json curve_json(const Curve& curve) { return {{"label", curve.label}, {"x", curve.x}, {"y", curve.y}}; }

Json curves_json(const std::vector<Curve>& curves) {
    Json json = Json::array();
    for (const Curve& curve : curves) json.push_back(curve_json(curve));
    return json;
}

Json comparison_json(const std::optional<ForceComparison>& comparison) {
    if (!comparison) return {};
    Json elements = Json::object();
    for (const ElementError& element : comparison->elements)
        elements[std::string(element_symbol(element.atomic_number))] = number(element.force_rmse);
    return {{"frames", comparison->frame_count},
            {"force_rmse_eV_per_A", number(comparison->force_rmse)},
            {"energy_rmse_meV_per_atom", number(1e3 * comparison->energy_rmse)},
            {"worst_force_eV_per_A", number(comparison->worst_force)},
            {"worst_atom", comparison->worst_atom},
            {"elements", elements}};
}

Json drift_json(const std::optional<EnergyDrift>& drift) {
    if (!drift) return {};
    return {{"drift_meV_per_atom_per_ns", number(drift->meV_per_atom_per_ns)},
            {"standard_error_meV_per_atom_per_ns", number(drift->meV_per_atom_per_ns_error)},
            {"drift_percent_of_kinetic_energy", number(drift->percent_of_kinetic_energy)},
            {"fluctuation_meV_per_atom", number(drift->fluctuation_meV_per_atom)}};
}

Json blow_up_json(const std::optional<BlowUp>& blow_up) {
    if (!blow_up) return {};
    return {{"phase", blow_up->phase},
            {"step", blow_up->step},
            {"reason", blow_up->reason},
            {"closest_pair", blow_up->closest_pair}};
}

Json fastest_json(const std::optional<FastestVibration>& fastest) {
    if (!fastest) return {};
    return {{"period_fs", number(fastest->period)}, {"element", std::string(element_symbol(fastest->atomic_number))}};
}

Json findings_json(const Findings& findings) {
    Json checks = Json::array();
    for (const Check& check : findings.checks) checks.push_back(check_json(check));
    return {{"broke", blow_up_json(findings.blow_up)},
            {"checks", checks},
            {"nve", drift_json(findings.drift)},
            {"fastest_vibration", fastest_json(findings.fastest)},
            {"curves",
             {{"energy", curve_json(findings.energy)},
              {"temperature", curves_json(findings.temperatures)},
              {"distances", curves_json(findings.distances)},
              {"bath_distances", curves_json(findings.bath_distances)}}}};
}

Json other_json(const std::optional<OtherDynamics>& other) {
    if (!other) return {};
    Json json = findings_json(other->findings), pairs = Json::array();
    for (const PairDifference& pair : other->pair_differences)
        pairs.push_back({{"pair", pair_label(pair.elements)},
                         {"shift_angstrom", number(pair.shift)},
                         {"uncertainty_angstrom", number(pair.uncertainty)},
                         {"change_of_mean_angstrom", number(pair.change)},
                         {"mostly_near_angstrom", number(pair.distance)}});
    json.update({{"steps", other->step_count}, {"pair_distances", pairs}});
    return json;
}

Json system_json(const SystemReport& system) {
    Json json = findings_json(system);
    json.update(
        {{"name", system.name},
         {"formula", system.formula},
         {"atoms", system.atom_count},
         {"periodic", system.is_periodic},
         {"verdict", system.is_passed() ? "pass" : "fail"},
         {"forces", {{"reference", comparison_json(system.path)}, {"against", comparison_json(system.against)}}},
         {"against", other_json(system.other)}});
    add_counts(json, system.counts());
    return json;
}

std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

// The value of a check, or a limit; bytes with their unit.
std::string number_of_check(const Check& check, double value) {
    return check.unit == "B" ? bytes_text(value) : short_number(value);
}

// The table of both models; "" if the other one was not run.
std::string markdown_of_other(const SystemReport& system) {
    if (!system.other) return "";
    std::string text = "\nBeside " + markdown_cell(other_sentence(system)) + ".\n\n";
    const std::vector<SideBySide> rows = side_by_side(system);
    if (!rows.empty()) text += "| | model | other model | verdict on it |\n|---|---|---|---|\n";
    for (const SideBySide& row : rows)
        text += concat("| ", markdown_cell(row.name), " | ", markdown_cell(row.model), " | ", markdown_cell(row.other),
                       " | ", row.verdict ? verdict_word(*row.verdict) : "", " |\n");
    return text;
}

}  // namespace

std::string markdown_cell(const std::string& text) {
    std::string escaped;
    for (char letter : text) {
        if (std::string_view("\\`*_{}[]<>#|~").find(letter) != std::string_view::npos) escaped += '\\';
        escaped += letter == '\n' || letter == '\r' ? ' ' : letter;
    }
    return escaped;
}

std::string value_text(const Check& check) {
    if (check.unit == "B") return number_of_check(check, check.value);
    std::string text = short_number(check.value);
    if (check.uncertainty > 0) text += " +- " + short_number(check.uncertainty);
    return check.unit.empty() ? text : text + (check.unit.starts_with("%") ? "" : " ") + check.unit;
}

std::string range_text(const Check& check) {
    if (std::isinf(check.lower)) return "at most " + number_of_check(check, check.upper);
    if (std::isinf(check.upper)) return "at least " + number_of_check(check, check.lower);
    return number_of_check(check, check.lower) + " to " + number_of_check(check, check.upper);
}

std::string remark_text(const Check& check) {
    if (check.verdict() != Verdict::undecided || check.deciding_steps <= 0) return check.note;
    return concat(check.note, check.note.empty() ? "" : "; ", "about ", check.deciding_steps, " steps would decide");
}

std::vector<report::Cell> check_cells(const Check& check) {
    const char* verdict = verdict_word(check.verdict());
    return {{check.name}, {value_text(check)}, {range_text(check)}, {verdict, verdict}, {remark_text(check), "note"}};
}

std::vector<SideBySide> side_by_side(const SystemReport& system) {
    std::vector<SideBySide> rows;
    if (!system.other) return rows;
    const Findings& other = system.other->findings;
    for (const Check& check : system.checks) {
        const auto found = std::find_if(other.checks.begin(), other.checks.end(),
                                        [&](const Check& others) { return others.name == check.name; });
        if (found == other.checks.end()) continue;
        rows.push_back({check.name, value_text(check), value_text(*found), found->verdict()});
        if (check.name == kOrderCheck && system.drift && other.drift)
            rows.push_back({"fluctuation of the energy",
                            short_number(system.drift->fluctuation_meV_per_atom) + " meV/atom",
                            short_number(other.drift->fluctuation_meV_per_atom) + " meV/atom"});
    }
    return rows;
}

std::string other_sentence(const SystemReport& system) {
    if (!system.other) return "";
    const OtherDynamics& other = *system.other;
    const auto failed = std::count_if(other.findings.checks.begin(), other.findings.checks.end(),
                                      [](const Check& check) { return check.verdict() == Verdict::failed; });
    std::string text =
        concat("the other model, ", other.step_count, " steps from the same start with the same random numbers");
    if (other.findings.blow_up)
        text += ": it broke itself, " + other.findings.blow_up->sentence();
    else if (failed > 0)
        text += concat(": it fails ", failed, failed == 1 ? " check" : " checks", " itself");
    return text;
}

std::string verdict_text(const SystemReport& system) {
    const size_t undecided = system.counts().undecided;
    return concat(system.is_passed() ? "pass" : "FAIL", undecided > 0 ? concat(", ", undecided, " undecided") : "");
}

std::string verdict_sentence(const Report& report) {
    size_t passed = 0;
    std::string failures;
    for (const SystemReport& system : report.systems) {
        passed += system.is_passed();
        if (system.blow_up) failures += "; " + system.name + ": " + system.blow_up->sentence();
        for (const Check& check : system.checks)
            if (check.verdict() == Verdict::failed)
                failures += concat("; ", system.name, ": ", check.name, " is ", value_text(check), ", allowed ",
                                   range_text(check));
    }
    const VerdictCounts counts = report.counts();
    const std::string of_systems = concat(report.systems.size(), report.systems.size() == 1 ? " system" : " systems");
    std::string undecided;
    if (counts.undecided > 0)
        undecided = concat("; ", counts.undecided, " undecided, for which this run is too short: about --steps ",
                           counts.deciding_steps, " would decide");
    if (report.is_passed()) return concat("PASS: ", counts.passed, " checks of ", of_systems, undecided);
    return concat("FAIL: ", report.systems.size() - passed, " of ", of_systems, failures, undecided);
}

Json report_json(const Report& report) {
    Json systems = Json::array();
    for (const SystemReport& system : report.systems) systems.push_back(system_json(system));
    Json json = {{"model", report.model},
                 {"device", report.device},
                 {"precision", report.precision},
                 {"against", report.against.empty() ? Json() : Json(report.against)},
                 {"against_steps", report.against.empty() ? Json() : Json(report.settings.against_step_count)},
                 {"steps", report.settings.step_count},
                 {"time_step_fs", report.settings.time_step},
                 {"temperature_K", report.settings.temperature},
                 {"thresholds", thresholds_json(report.settings.thresholds)},
                 {"verdict", report.is_passed() ? "pass" : "fail"},
                 {"systems", systems}};
    for (const Recommendation& recommendation : recommendations(report))
        json["recommendations"].push_back({{"about", recommendation.about}, {"sentence", recommendation.sentence}});
    add_counts(json, report.counts());
    return json;
}

std::string report_markdown(const Report& report) {
    std::string text = concat("# Validation of ", markdown_cell(report.model), "\n\n**",
                              markdown_cell(verdict_sentence(report)), "**\n\n", report.settings.step_count,
                              " steps of ", report.settings.time_step, " fs at ", report.settings.temperature,
                              " K, on ", markdown_cell(report.device), " in ", report.precision, " precision");
    if (!report.against.empty()) text += ", against " + markdown_cell(report.against);
    text += ".\n\n";
    for (const Recommendation& recommendation : recommendations(report))
        text += concat("- ", recommendation.about, ": ", markdown_cell(recommendation.sentence), "\n");
    for (const SystemReport& system : report.systems) {
        text += concat("\n## ", markdown_cell(system.name), ": ", verdict_text(system), "\n\n", system.formula, ", ",
                       system.atom_count, " atoms", system.is_periodic ? ", periodic" : "", ".\n\n");
        if (system.blow_up) text += markdown_cell(system.blow_up->sentence()) + ".\n\n";
        if (system.checks.empty()) continue;
        text += "| check | found | allowed | | |\n|---|---|---|---|---|\n";
        for (const Check& check : system.checks)
            text += "| " + markdown_cell(check.name) + " | " + markdown_cell(value_text(check)) + " | " +
                    range_text(check) + " | " +
                    (check.verdict() == Verdict::failed ? "**FAIL**" : verdict_word(check.verdict())) + " | " +
                    markdown_cell(remark_text(check)) + " |\n";
        text += markdown_of_other(system);
    }
    return text;
}

}  // namespace mlff::validate
