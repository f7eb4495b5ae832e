// SPDX-License-Identifier: MIT
#include "tools/validate/report.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/bytes_text.h"
#include "core/error.h"

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
    return {{"frames", comparison->frame_count},
            {"force_rmse_eV_per_A", number(comparison->force_rmse)},
            {"energy_rmse_meV_per_atom", number(1e3 * comparison->energy_rmse)},
            {"worst_force_eV_per_A", number(comparison->worst_force)},
            {"worst_atom", comparison->worst_atom}};
}

Json drift_json(const std::optional<EnergyDrift>& drift) {
    if (!drift) return {};
    return {{"drift_meV_per_atom_per_ns", number(drift->meV_per_atom_per_ns)},
            {"standard_error_meV_per_atom_per_ns", number(drift->meV_per_atom_per_ns_error)},
            {"drift_percent_of_kinetic_energy", number(drift->percent_of_kinetic_energy)},
            {"fluctuation_meV_per_atom", number(drift->fluctuation_meV_per_atom)}};
}

Json system_json(const SystemReport& system) {
    Json checks = Json::array();
    for (const Check& check : system.checks) checks.push_back(check_json(check));
    Json failure;
    if (system.blow_up)
        failure = {{"phase", system.blow_up->phase},
                   {"step", system.blow_up->step},
                   {"reason", system.blow_up->reason},
                   {"closest_pair", system.blow_up->closest_pair}};
    Json json = {
        {"name", system.name},
        {"formula", system.formula},
        {"atoms", system.atom_count},
        {"periodic", system.is_periodic},
        {"verdict", system.is_passed() ? "pass" : "fail"},
        {"broke", failure},
        {"checks", checks},
        {"nve", drift_json(system.drift)},
        {"forces", {{"reference", comparison_json(system.path)}, {"against", comparison_json(system.against)}}},
        {"curves",
         {{"energy", curve_json(system.energy)},
          {"temperature", curves_json(system.temperatures)},
          {"distances", curves_json(system.distances)}}}};
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
                 {"steps", report.settings.step_count},
                 {"time_step_fs", report.settings.time_step},
                 {"temperature_K", report.settings.temperature},
                 {"thresholds", thresholds_json(report.settings.thresholds)},
                 {"verdict", report.is_passed() ? "pass" : "fail"},
                 {"systems", systems}};
    add_counts(json, report.counts());
    return json;
}

std::string report_markdown(const Report& report) {
    std::string text = concat("# Validation of ", markdown_cell(report.model), "\n\n**",
                              markdown_cell(verdict_sentence(report)), "**\n\n", report.settings.step_count,
                              " steps of ", report.settings.time_step, " fs at ", report.settings.temperature,
                              " K, on ", markdown_cell(report.device), " in ", report.precision, " precision");
    if (!report.against.empty()) text += ", against " + markdown_cell(report.against);
    text += ".\n";
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
    }
    return text;
}

}  // namespace mlff::validate
