// SPDX-License-Identifier: MIT
#include "tools/bench/report_html.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tools/validate/report.h"

namespace mlff::bench {
namespace {

using report::Cell;
using report::Curve;
using report::html_escaped;
using report::Plot;

constexpr double kMilli = 1e3, kMega = 1e-6;  // s to ms, B to MB
constexpr size_t kBins = 30;

using Rows = std::vector<const Row*>;

std::string row_table(const Rows& rows) {
    std::vector<std::vector<Cell>> cells;
    for (const Row* row : rows) {
        const Summary& s = row->summary;
        const auto number = [&](double value) { return Cell{quantity_text(value, row->unit), "number"}; };
        cells.push_back({{row->name},
                         number(s.median),
                         {quantity_text(s.median_interval.low, row->unit) + " to " +
                              quantity_text(s.median_interval.high, row->unit),
                          "number"},
                         number(s.p95),
                         number(s.p99),
                         {std::to_string(row->samples.size()), "number"},
                         {notes_text(*row), "note"}});
    }
    return report::html_table({"", "median", "95 % interval", "P95", "P99", "samples", ""}, cells);
}

Plot time_plot(const std::string& title, const Rows& rows) {
    Plot plot{title, "atoms", "ms", {time_curve("", rows)}, Plot::Style::line_and_points};
    plot.is_log_x = plot.is_log_y = true;
    return plot;
}

// A histogram of the samples' times, with logarithmic axes, so that a single slow call is visible.
Plot tail_plot(const Row& row) {
    Plot plot{row.name + ": samples by their time", "ms", "samples", {}};
    plot.is_log_x = plot.is_log_y = true;
    plot.lowest_y = 0.5;
    const double low = row.summary.minimum, high = row.summary.maximum;
    if (!(low > 0 && high > low)) return plot;
    const auto edge = [&](size_t bin) { return kMilli * low * std::pow(high / low, static_cast<double>(bin) / kBins); };
    std::vector<double> counts(kBins, 0.0);
    for (double sample : row.samples)
        ++counts[std::min(kBins - 1, static_cast<size_t>(kBins * std::log(sample / low) / std::log(high / low)))];
    for (size_t bin = 0; bin < kBins; ++bin)
        if (counts[bin] > 0) plot.bars.push_back({edge(bin), edge(bin + 1), counts[bin]});
    plot.marks = {
        {kMilli * row.summary.median, "median"}, {kMilli * row.summary.p95, "P95"}, {kMilli * row.summary.p99, "P99"}};
    return plot;
}

Plot throughput_plot(const Rows& rows) {
    Curve curve;
    for (const Row* row : rows)
        for (const auto& [name, value] : row->figures)
            if (name == "systems/s") {
                curve.x.push_back(static_cast<double>(row->atoms));
                curve.y.push_back(value);
            }
    Plot plot{"Systems in a second", "atoms in a call", "systems/s", {curve}, Plot::Style::line_and_points};
    plot.is_log_x = true;
    plot.lowest_y = 0;
    return plot;
}

// The time per step in consecutive blocks of the run: it rises if the machine gets hot or memory leaks.
Plot blocks_plot(const Row& row) {
    Curve curve;
    for (size_t block = 0; block < row.samples.size(); ++block) {
        curve.x.push_back(static_cast<double>(block + 1));
        curve.y.push_back(kMilli * row.samples[block]);
    }
    Plot plot{"Time of a step along the run", "block of steps", "ms", {curve}, Plot::Style::line_and_points};
    plot.horizontal = kMilli * row.summary.median;
    plot.lowest_y = 0;
    return plot;
}

Plot memory_plot(const Rows& rows) {
    Curve curve;
    for (const Row* row : rows) {
        curve.x.push_back(static_cast<double>(row->atoms));
        curve.y.push_back(kMega * row->summary.median);
    }
    Plot plot{"Memory of a session, and the line through it", "atoms", "MB", {curve}, Plot::Style::points};
    plot.lowest_y = 0;
    if (rows.size() > 1) {
        const StraightLine line = fit_straight_line(curve.x, curve.y);
        const double first = curve.x.front(), last = curve.x.back();
        plot.guide =
            Curve{"", {first, last}, {line.intercept + line.slope * first, line.intercept + line.slope * last}};
    }
    return plot;
}

std::string plots_of(const std::string& suite, const Rows& rows) {
    std::string text;
    if (suite == "latency") {
        text = svg(time_plot("Time of a call against size: median, band up to P95", rows));
        for (const Row* row : rows) text += svg(tail_plot(*row));
    } else if (suite == "throughput") {
        text = svg(throughput_plot(rows));
    } else if (suite == "md") {
        for (const Row* row : rows) text += svg(blocks_plot(*row));
    } else if (suite == "memory") {
        text = svg(memory_plot(rows));
    } else if (suite == "neighbors") {
        text = svg(time_plot("Time of a search against size: median, band up to P95", rows));
    }
    return plots_div(text);
}

std::string suite_sections(const Report& report) {
    std::string text;
    for (size_t first = 0; first < report.rows.size();) {
        const std::string& suite = report.rows[first].suite;
        Rows rows;
        for (; first < report.rows.size() && report.rows[first].suite == suite; ++first)
            rows.push_back(&report.rows[first]);
        text += "<section id=\"" + html_escaped(suite) + "\"><h2>" + html_escaped(suite) + "</h2>\n" + row_table(rows) +
                plots_of(suite, rows) + "</section>\n";
    }
    return text;
}

std::string check_section(const Report& report) {
    std::vector<std::vector<Cell>> cells;
    for (const Row& row : report.rows)
        for (const Check& check : row.checks) {
            cells.push_back(validate::check_cells(check));
            cells.back().insert(cells.back().begin(), {row.title()});
        }
    if (cells.empty()) return "";
    std::vector<std::string> header = validate::kCheckHeader;
    header.insert(header.begin(), "of");
    return "<section id=\"checks\"><h2>checks</h2>\n" + report::html_table(header, cells) + "</section>\n";
}

std::string verdict_of(const Report& report, const std::optional<Comparison>& baseline) {
    size_t checks = 0, failed = report.failures.size();
    for (const Row& row : report.rows)
        for (const Check& check : row.checks) ++checks, failed += check.is_passed() ? 0 : 1;
    const size_t regressions = baseline ? baseline->regressions.size() : 0;
    std::string text = failed + regressions == 0 ? "PASS: " : "FAIL: ";
    if (failed > 0)
        text += concat(failed, failed == 1 ? " check failed" : " checks failed");
    else
        text +=
            concat(report.rows.size(), " lines measured, ", checks, checks == 1 ? " check passed" : " checks passed");
    if (baseline)
        text += concat("; beside ", baseline->file, ": ", counts_text(*baseline), " in ", baseline->compared, " lines");
    return text;
}

std::string baseline_section(const std::optional<Comparison>& baseline) {
    if (!baseline) return "";
    return list_section("worse than the baseline", baseline->regressions) +
           list_section("undecided beside the baseline", baseline->undecided) +
           list_section("better than the baseline", baseline->improvements) +
           list_section("notes on the baseline", baseline->notes);
}

}  // namespace

std::vector<std::vector<Cell>> fact_rows(const RunFacts& facts) {
    const Machine& machine = facts.machine;
    std::vector<std::vector<Cell>> rows = {
        {{"mlff"}, {facts.mlff_version + (facts.commit.empty() ? "" : ", commit " + facts.commit)}},
        {{"measured"}, {facts.time + (facts.is_quick ? ", a quick run: its numbers are rough" : "")}},
        {{"processor"},
         {concat(machine.processor, machine.processor.empty() ? "" : ", ", machine.architecture, ", ",
                 machine.instructions, ", ", machine.cores, machine.cores == 1 ? " core" : " cores")}}};
    if (!machine.gpu.empty())
        rows.push_back(
            {{"GPU"},
             {concat(machine.gpu, ", ", quantity_text(static_cast<double>(machine.gpu_memory_bytes), "B"), ", ",
                     machine.gpu_clock_MHz, " MHz, driver ", machine.gpu_driver, ", runtime ", machine.gpu_runtime)}});
    rows.push_back({{"atoms"}, {facts.material}});
    return rows;
}

Curve time_curve(const std::string& label, const std::vector<const Row*>& rows) {
    Curve curve{label, {}, {}};
    for (const Row* row : rows) {
        curve.x.push_back(static_cast<double>(row->atoms));
        curve.y.push_back(kMilli * row->summary.median);
        curve.low.push_back(kMilli * row->summary.median);
        curve.high.push_back(kMilli * row->summary.p95);
    }
    return curve;
}

std::string list_section(const std::string& title, const std::vector<std::string>& lines) {
    if (lines.empty()) return "";
    std::string text = "<section><h2>" + html_escaped(title) + "</h2>\n<ul>\n";
    for (const std::string& line : lines) text += "<li>" + html_escaped(line) + "</li>\n";
    return text + "</ul>\n</section>\n";
}

std::string plots_div(const std::string& figures) {
    return figures.empty() ? "" : "<div class=\"plots\">\n" + figures + "</div>\n";
}

std::string report_html(const Report& report, const std::optional<Comparison>& baseline) {
    std::vector<std::vector<Cell>> facts = {
        {{"model"}, {report.model}},
        {{"sha256"}, {report.sha256.empty() ? "none" : report.sha256, "note"}},
        {{"on"},
         {concat(report.device, ", ", report.precision, report.head.empty() ? "" : ", head " + report.head, ", ",
                 threads_text(report.threads))}}};
    for (std::vector<Cell>& row : fact_rows(report)) facts.push_back(std::move(row));
    const bool is_good = report.is_passed() && !(baseline && !baseline->regressions.empty());
    return report::html_page("Benchmark of " + report.model,
                             report::verdict_paragraph(is_good, verdict_of(report, baseline)) +
                                 report::html_table({"", ""}, facts) + list_section("failures", report.failures) +
                                 baseline_section(baseline) + suite_sections(report) + check_section(report) +
                                 list_section("not measured", report.left_out));
}

}  // namespace mlff::bench
