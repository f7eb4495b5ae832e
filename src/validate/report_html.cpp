// SPDX-License-Identifier: MIT
#include <algorithm>

#include "core/error.h"
#include "validate/report.h"
#include "validate/svg_plot.h"

namespace mlff::validate {
namespace {

constexpr const char* kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1f23; background: #fff; max-width: 1010px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.2em; margin-top: 2em; border-top: 1px solid #d7dbe0; padding-top: 1em; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25em .8em .25em 0; border-bottom: 1px solid #e6e9ec; vertical-align: top; }
th { font-weight: 600; } td.note { color: #5a626b; font-size: .9em; overflow-wrap: anywhere; }
.verdict { padding: .7em 1em; border-radius: 6px; overflow-wrap: anywhere; } .pass { background: #e6f4ea; color: #14532d; } .fail { background: #fdeaea; color: #7f1d1d; }
td.pass, td.fail { background: none; font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1em; }
figure { margin: 1em 0 0; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: #3b424a; }
.grid { stroke: #e3e6ea; } .curve { fill: none; stroke-width: 1.3; } .guide { fill: none; stroke: #555; stroke-dasharray: 5 4; } .points { fill-opacity: .45; }
.legend { font-size: .85em; } .legend i { display: inline-block; width: 1em; height: .25em; margin-right: .3em; vertical-align: middle; }
)";

const char* verdict_class(bool is_passed) { return is_passed ? "pass" : "fail"; }

std::string check_table(const SystemReport& system) {
    if (system.checks.empty()) return "";
    std::string rows;
    for (const Check& check : system.checks)
        rows += "<tr><td>" + html_escaped(check.name) + "</td><td>" + html_escaped(value_text(check)) + "</td><td>" + html_escaped(range_text(check)) + "</td><td class=\"" +
                verdict_class(check.is_passed()) + "\">" + verdict_class(check.is_passed()) + "</td><td class=\"note\">" + html_escaped(check.note) + "</td></tr>\n";
    return "<table><tr><th>check</th><th>found</th><th>allowed</th><th></th><th></th></tr>\n" + rows + "</table>\n";
}

Plot energy_plot(const SystemReport& system) {
    Plot plot{"Total energy without a thermostat", "time, ps", "change, meV/atom", {system.energy}, false, {}, {}, {}};
    if (system.drift && !system.energy.x.empty()) {
        const double slope = system.drift->meV_per_atom_per_ns * 1e-3;  // meV/atom/ps
        const auto count = static_cast<double>(system.energy.x.size());
        double middle = 0, mean = 0;
        for (double x : system.energy.x) middle += x / count;
        for (double y : system.energy.y) mean += y / count;
        const double first = system.energy.x.front(), last = system.energy.x.back();
        plot.guide = Curve{"", {first, last}, {mean + slope * (first - middle), mean + slope * (last - middle)}};
    }
    return plot;
}

Plot parity_plot(const ForceComparison& comparison, const std::string& other) {
    constexpr size_t kMostPoints = 1500;
    Curve points{"", {}, {}};
    const size_t stride = (comparison.found.size() + kMostPoints - 1) / kMostPoints;
    for (size_t i = 0; i < comparison.found.size(); i += stride) {
        points.x.push_back(comparison.expected[i]);
        points.y.push_back(comparison.found[i]);
    }
    return {"Forces beside those of " + other, other + ", eV/A", "model, eV/A", {points}, true, {}, {}, {}};
}

std::string plots(const SystemReport& system, const Report& report) {
    std::string text = svg(energy_plot(system));
    text += svg({"Temperature", "time, ps", "K", system.temperatures, false, {}, report.settings.temperature, {}});
    if (system.against)
        text += svg(parity_plot(*system.against, report.against));
    else if (system.path)
        text += svg(parity_plot(*system.path, "the fp64 reference"));
    std::vector<Curve> curves = system.distances;
    Plot distances{system.is_periodic ? "Radial distribution" : "Distances of pairs", "distance, A", system.is_periodic ? "g(r)" : "pairs per A", std::move(curves), false, {}, {}, {}};
    if (system.is_periodic) distances.highest_y = 6;
    return "<div class=\"plots\">\n" + text + svg(distances) + "</div>\n";
}

std::string section(const SystemReport& system, const Report& report) {
    std::string text = concat("<section><h2>", html_escaped(system.name), ": <span class=\"", verdict_class(system.is_passed()), "\">", verdict_class(system.is_passed()),
                              "</span></h2>\n<p>", html_escaped(system.formula), ", ", system.atom_count, " atoms", system.is_periodic ? ", periodic" : "", "</p>\n");
    if (system.blow_up) text += "<p class=\"verdict fail\">" + html_escaped(system.blow_up->sentence()) + "</p>\n";
    return text + check_table(system) + plots(system, report) + "</section>\n";
}

}  // namespace

std::string report_html(const Report& report) {
    const Settings& settings = report.settings;
    std::string text = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<link rel=\"icon\" href=\"data:,\">\n<title>Validation of " +
                       html_escaped(report.model) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>Validation of " + html_escaped(report.model) + "</h1>\n";
    text += concat("<p id=\"verdict\" class=\"verdict ", verdict_class(report.is_passed()), "\">", html_escaped(verdict_sentence(report)), "</p>\n<p>", settings.step_count,
                   " steps of ", settings.time_step, " fs at ", settings.temperature, " K, on ", html_escaped(report.device), " in ", html_escaped(report.precision), " precision",
                   report.against.empty() ? "" : ", against " + html_escaped(report.against), ". mlff ", MLFF_VERSION_STRING, "</p>\n");
    for (const SystemReport& system : report.systems) text += section(system, report);
    return text + "</body>\n</html>\n";
}

}  // namespace mlff::validate
