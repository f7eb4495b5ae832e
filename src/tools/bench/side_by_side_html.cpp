// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "tools/bench/report_html.h"
#include "tools/bench/side_by_side.h"
#include "tools/validate/report.h"

namespace mlff::bench {
namespace {

using report::Cell;
using report::Plot;

// The rows of one implementation, one per size.
std::vector<const Row*> rows_of_implementation(const SideBySide& result, size_t index) {
    std::vector<const Row*> rows;
    for (const SideBySideSize& size : result.sizes) rows.push_back(&size.entries[index].row);
    return rows;
}

Plot times_plot(const SideBySide& result) {
    Plot plot{"Time of a call against size: median, band up to P95", "atoms", "ms", {}, Plot::Style::line_and_points};
    plot.is_log_x = plot.is_log_y = true;
    for (size_t i = 0; i < result.implementations.size(); ++i)
        plot.curves.push_back(time_curve(result.implementations[i].label, rows_of_implementation(result, i)));
    return plot;
}

// A group of bars per size, one bar per implementation except the first, which is the dashed line at 1. Logarithmic:
// half as fast is as far from the line as twice as fast.
Plot speed_up_plot(const SideBySide& result) {
    Plot plot{"Speed-up over " + result.implementations.front().label, "atoms", "times as fast", {}};
    plot.is_log_y = true;
    plot.horizontal = 1;
    const size_t bars = result.implementations.size() - 1;
    plot.legend = {""};
    for (size_t i = 1; i <= bars; ++i) plot.legend.push_back(result.implementations[i].label);
    for (size_t group = 0; group < result.sizes.size(); ++group) {
        const std::vector<SideBySideEntry>& entries = result.sizes[group].entries;
        plot.x_names.emplace_back(static_cast<double>(group) + 0.5, std::to_string(entries.front().row.atoms));
        for (size_t i = 1; i <= bars; ++i) {
            const double width = 0.8 / static_cast<double>(bars),
                         begin = static_cast<double>(group) + 0.1 + width * static_cast<double>(i - 1);
            plot.bars.push_back({begin, begin + width, entries[i].speed_up, entries[i].speed_up_interval.low,
                                 entries[i].speed_up_interval.high, i});
        }
    }
    return plot;
}

std::string comparison_table(const SideBySide& result) {
    std::vector<std::vector<Cell>> cells;
    for (const SideBySideSize& size : result.sizes)
        for (size_t i = 0; i < size.entries.size(); ++i) {
            const SideBySideEntry& entry = size.entries[i];
            const Row& row = entry.row;
            const auto number = [](const std::string& text) { return Cell{text, "number"}; };
            const std::string interval =
                i == 0 ? "" : digits(entry.speed_up_interval.low) + " to " + digits(entry.speed_up_interval.high);
            cells.push_back({number(i == 0 ? size.name : ""),
                             {result.implementations[i].label},
                             number(quantity_text(row.summary.median, "s")),
                             number(quantity_text(row.summary.p95, "s")),
                             number(digits(entry.speed_up)),
                             number(interval),
                             number(row.figures.empty() ? "" : digits(row.figures[0].second)),
                             number(row.figures.empty() ? "" : digits(row.figures[1].second))});
            if (row.checks.empty()) {
                cells.back().insert(cells.back().end(), {{""}, {""}, {""}});
                continue;
            }
            const Check& check = row.checks.front();
            const char* verdict = report::verdict_class(check.is_passed());
            cells.back().insert(cells.back().end(),
                                {number(digits(check.value)), number(validate::range_text(check)), {verdict, verdict}});
        }
    return report::html_table({"atoms", "implementation", "median", "P95", "speed-up", "95 % interval",
                               "energy, meV/atom", "forces, RMSE, eV/A", "largest, eV/A", "allowed", ""},
                              cells);
}

std::string verdict_of_comparison(const SideBySide& result) {
    size_t checks = 0, failed = 0;
    for (const SideBySideSize& size : result.sizes)
        for (const SideBySideEntry& entry : size.entries)
            for (const Check& check : entry.row.checks) ++checks, failed += check.is_passed() ? 0 : 1;
    if (failed > 0)
        return concat("FAIL: ", failed, " of ", checks,
                      " comparisons of forces with the fp64 reference are beyond what is allowed");
    return concat("PASS: ", result.implementations.size(), " implementations measured, ", checks,
                  checks == 1 ? " check of forces" : " checks of forces");
}

}  // namespace

std::string side_by_side_html(const SideBySide& result) {
    std::vector<std::vector<Cell>> facts;
    for (const Implementation& one : result.implementations)
        facts.push_back({{one.label}, {one.model + (one.sha256.empty() ? "" : ", sha256 " + one.sha256), "note"}});
    for (std::vector<Cell>& row : fact_rows(result)) facts.push_back(std::move(row));
    return report::html_page(
        "Implementations side by side",
        report::verdict_paragraph(result.is_passed(), verdict_of_comparison(result)) +
            report::html_table({"", ""}, facts) + "<section id=\"compare\"><h2>compared</h2>\n" +
            plots_div(svg(times_plot(result)) + svg(speed_up_plot(result))) + comparison_table(result) +
            "<p>Energies and forces: the error beside the fp64 reference in the same run.</p>\n</section>\n" +
            list_section("not measured", result.left_out));
}

}  // namespace mlff::bench
