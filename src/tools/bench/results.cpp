// SPDX-License-Identifier: MIT
#include "tools/bench/results.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/validate/report.h"

namespace mlff::bench {
namespace {

using BenchJson = nlohmann::json;

BenchJson finite(double value) { return std::isfinite(value) ? BenchJson(value) : BenchJson(); }

std::string outlier_text(const Row& row) {
    return row.summary.outliers.empty() ? ""
                                        : concat(row.summary.outliers.size(), " of ", row.samples.size(), " outliers");
}

// The name of a figure begins or ends with its unit: "B kept by session", "predicted s".
std::string figure_text(const std::string& name, double value) {
    for (const std::string unit : {"B", "B/atom", "s"}) {
        if (name == unit || name.starts_with(unit + " ")) return quantity_text(value, unit) + name.substr(unit.size());
        if (name.ends_with(" " + unit))
            return quantity_text(value, unit) + " " + name.substr(0, name.size() - unit.size() - 1);
    }
    return digits(value) + " " + name;
}

std::string figures_text(const Row& row) {
    std::string text;
    for (const auto& [name, value] : row.figures) text += (text.empty() ? "" : ", ") + figure_text(name, value);
    return text;
}

std::string check_text(const Check& check) {
    return concat(check.is_passed() ? "pass" : "FAIL", "  ", check.name, ": ", validate::value_text(check),
                  ", allowed ", validate::range_text(check), check.note.empty() ? "" : " (" + check.note + ")");
}

}  // namespace

std::string digits(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

std::string notes_text(const Row& row) {
    return figures_text(row) + (row.figures.empty() || row.summary.outliers.empty() ? "" : "; ") + outlier_text(row);
}

std::string machine_text(const Machine& machine) {
    return machine.gpu.empty() ? concat(machine.processor.empty() ? machine.architecture : machine.processor, ", ",
                                        machine.instructions)
                               : machine.gpu;
}

std::string threads_text(int count) {
    return count == 0 ? "threads of its own choice" : concat(count, count == 1 ? " thread" : " threads");
}

std::string facts_text(const RunFacts& facts) {
    return concat("mlff ", facts.mlff_version, facts.commit.empty() ? "" : ", commit " + facts.commit, "; ", facts.time,
                  "; ", machine_text(facts.machine), "; ", facts.material,
                  facts.is_quick ? "; a quick run: its numbers are rough" : "");
}

bool Report::is_passed() const {
    return failures.empty() && std::all_of(rows.begin(), rows.end(), [](const Row& row) {
               return std::all_of(row.checks.begin(), row.checks.end(),
                                  [](const Check& check) { return check.is_passed(); });
           });
}

std::string quantity_text(double value, const std::string& unit) {
    constexpr std::pair<double, const char*> kPrefixes[] = {{1e9, "G"},  {1e6, "M"},  {1e3, "k"}, {1, ""},
                                                            {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
    for (const auto& [size, prefix] : kPrefixes)
        if (std::abs(value) >= size && (unit == "s" ? size <= 1 : size >= 1))
            return digits(value / size) + " " + prefix + unit;
    return digits(value) + " " + unit;
}

nlohmann::json row_json(const Row& row) {
    BenchJson figures = BenchJson::object(), checks = BenchJson::array();
    for (const auto& [name, value] : row.figures) figures[name] = finite(value);
    for (const Check& check : row.checks)
        checks.push_back({{"name", check.name},
                          {"value", finite(check.value)},
                          {"lower", finite(check.lower)},
                          {"upper", finite(check.upper)},
                          {"unit", check.unit},
                          {"note", check.note},
                          {"passed", check.is_passed()}});
    const Summary& s = row.summary;
    return {{"suite", row.suite},
            {"name", row.name},
            {"atoms", row.atoms},
            {"unit", row.unit},
            {"mean", s.mean},
            {"median", s.median},
            {"median_low", s.median_interval.low},
            {"median_high", s.median_interval.high},
            {"standard_deviation", s.deviation},
            {"minimum", s.minimum},
            {"maximum", s.maximum},
            {"p95", s.p95},
            {"p99", s.p99},
            {"outliers", s.outliers},
            {"samples", row.samples},
            {"blocks", row.blocks},
            {"probes", row.probes},
            {"contention", row.contention},
            {"figures", figures},
            {"checks", checks}};
}

nlohmann::json facts_json(const RunFacts& facts) {
    const Machine& machine = facts.machine;
    BenchJson gpu;
    if (!machine.gpu.empty())
        gpu = {{"name", machine.gpu},
               {"driver", machine.gpu_driver},
               {"runtime", machine.gpu_runtime},
               {"memory_bytes", machine.gpu_memory_bytes},
               {"clock_MHz", machine.gpu_clock_MHz}};
    return {{"mlff", facts.mlff_version},
            {"commit", facts.commit},
            {"time", facts.time},
            {"material", facts.material},
            {"quick", facts.is_quick},
            {"machine",
             {{"processor", machine.processor},
              {"architecture", machine.architecture},
              {"instructions", machine.instructions},
              {"cores", machine.cores},
              {"gpu", gpu}}}};
}

nlohmann::json report_json(const Report& report) {
    BenchJson json = facts_json(report), rows = BenchJson::array();
    for (const Row& row : report.rows) rows.push_back(row_json(row));
    json.update({{"format", "mlff-bench"},
                 {"version", 1},
                 {"model", report.model},
                 {"sha256", report.sha256},
                 {"device", report.device},
                 {"precision", report.precision},
                 {"head", report.head},
                 {"threads", report.threads},
                 {"rows", rows},
                 {"left_out", report.left_out},
                 {"failures", report.failures},
                 {"passed", report.is_passed()}});
    return json;
}

std::string report_markdown(const Report& report) {
    std::string text = concat("# Benchmark of ", validate::markdown_cell(report.model), "\n\n", facts_text(report),
                              "; device ", report.device, ", ", report.precision, ", ", threads_text(report.threads),
                              ".\n\nModel sha256: ", report.sha256.empty() ? "none" : report.sha256, "\n");
    std::string suite;
    for (const Row& row : report.rows) {
        if (row.suite != suite)
            text += concat(
                "\n## ", row.suite,
                "\n\n| | median | 95 % interval | mean | P95 | P99 | samples | |\n|---|--:|--:|--:|--:|--:|--:|---|\n");
        suite = row.suite;
        const Summary& s = row.summary;
        const auto cell = [&](double value) { return quantity_text(value, row.unit); };
        text += concat("| ", row.name, " | ", cell(s.median), " | ", cell(s.median_interval.low), " to ",
                       cell(s.median_interval.high), " | ", cell(s.mean), " | ", cell(s.p95), " | ", cell(s.p99), " | ",
                       row.samples.size(), " | ", notes_text(row), " |\n");
    }
    text += "\n## checks\n\n";
    for (const Row& row : report.rows)
        for (const Check& check : row.checks)
            text += "- " + validate::markdown_cell(row.title() + ": " + check_text(check)) + "\n";
    for (const std::string& why : report.left_out) text += "- not measured: " + validate::markdown_cell(why) + "\n";
    for (const std::string& why : report.failures) text += "- FAIL  " + validate::markdown_cell(why) + "\n";
    return text;
}

std::string row_text(const Row& row) {
    char columns[160];
    const Summary& s = row.summary;
    const auto cell = [&](double value) { return quantity_text(value, row.unit); };
    std::snprintf(columns, sizeof columns, "%-11s %-26s %10s %10s %10s %10s %10s ", row.suite.c_str(), row.name.c_str(),
                  cell(s.median).c_str(), cell(s.median_interval.low).c_str(), cell(s.median_interval.high).c_str(),
                  cell(s.p95).c_str(), cell(s.p99).c_str());
    std::string text = columns + notes_text(row) + "\n";
    for (const Check& check : row.checks) text += "            " + check_text(check) + "\n";
    return text;
}

}  // namespace mlff::bench
