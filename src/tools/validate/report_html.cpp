// SPDX-License-Identifier: MIT
#include <algorithm>

#include "core/error.h"
#include "tools/report/html_page.h"
#include "tools/report/svg_plot.h"
#include "tools/validate/recommendations.h"
#include "tools/validate/report.h"

namespace mlff::validate {
namespace {

using report::html_escaped;
using report::Plot;
using report::verdict_class;

std::string check_table(const SystemReport& system) {
    std::vector<std::vector<report::Cell>> rows;
    for (const Check& check : system.checks) rows.push_back(check_cells(check));
    return report::html_table(kCheckHeader, rows);
}

// Both models; "" if the other one was not run.
std::string other_table(const SystemReport& system) {
    if (!system.other) return "";
    std::vector<std::vector<report::Cell>> rows;
    for (const SideBySide& row : side_by_side(system)) {
        const std::string verdict = row.verdict ? verdict_word(*row.verdict) : "";
        rows.push_back({{row.name}, {row.model}, {row.other}, {verdict, verdict}});
    }
    return "<p>Beside " + html_escaped(other_sentence(system)) + ".</p>\n" +
           report::html_table({"", "model", "other model", "verdict on it"}, rows);
}

std::string recommendation_list(const Report& report) {
    std::string text = "<ul id=\"recommendations\">\n";
    for (const Recommendation& recommendation : recommendations(report))
        text += concat("<li><b>", html_escaped(recommendation.about), "</b>: ", html_escaped(recommendation.sentence),
                       "</li>\n");
    return text + "</ul>\n";
}

Plot energy_plot(const SystemReport& system) {
    Plot plot{"Total energy without a thermostat", "time, ps", "change, meV/atom", {system.energy}};
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
    Plot plot{"Forces beside those of " + other, other + ", eV/A", "model, eV/A", {points}, Plot::Style::points};
    plot.is_parity = true;
    return plot;
}

Plot distance_plot(const SystemReport& system, const std::string& where, std::vector<Curve> curves) {
    Plot plot{(system.is_periodic ? "Radial distribution" : "Distances of pairs") + where, "distance, A",
              system.is_periodic ? "g(r)" : "pairs per A", std::move(curves)};
    if (system.is_periodic) plot.highest_y = 6;
    return plot;
}

Curve named(Curve curve, const std::string& label) {
    curve.label = label;
    return curve;
}

// Dashed curves of the other model, in the colours of those with the same label.
void overlay(Plot& plot, const std::vector<Curve>& others) {
    for (const Curve& other : others) {
        const auto same = [&](const Curve& curve) { return curve.label == other.label; };
        auto found = std::find_if(plot.curves.begin(), plot.curves.end(), same);
        if (found == plot.curves.end()) found = plot.curves.insert(found, Curve{other.label, {}, {}});
        plot.overlays.resize(plot.curves.size());
        plot.overlays[static_cast<size_t>(found - plot.curves.begin())] = other;
    }
    plot.overlay_name = "dashed: the other model";
}

std::string plots(const SystemReport& system, const Report& report) {
    Plot energy = energy_plot(system), temperature{"Temperature", "time, ps", "K", system.temperatures};
    temperature.horizontal = report.settings.temperature;
    if (system.other) {
        energy.curves = {named(system.energy, "this model"), named(system.other->findings.energy, "the other model")};
        overlay(temperature, system.other->findings.temperatures);
    }
    std::string text = svg(energy) + svg(temperature);
    if (system.against)
        text += svg(parity_plot(*system.against, report.against));
    else if (system.path)
        text += svg(parity_plot(*system.path, "the fp64 reference"));
    text += svg(distance_plot(system, "", system.distances));
    if (system.other) {
        Plot in_bath = distance_plot(system, " in a bath", system.bath_distances);
        overlay(in_bath, system.other->findings.bath_distances);
        text += svg(in_bath);
    }
    return "<div class=\"plots\">\n" + text + "</div>\n";
}

std::string section(const SystemReport& system, const Report& report) {
    std::string text =
        concat("<section><h2>", html_escaped(system.name), ": <span class=\"", verdict_class(system.is_passed()), "\">",
               verdict_text(system), "</span></h2>\n<p>", html_escaped(system.formula), ", ", system.atom_count,
               " atoms", system.is_periodic ? ", periodic" : "", "</p>\n");
    if (system.blow_up) text += "<p class=\"verdict fail\">" + html_escaped(system.blow_up->sentence()) + "</p>\n";
    return text + check_table(system) + other_table(system) + plots(system, report) + "</section>\n";
}

}  // namespace

std::string report_html(const Report& report) {
    const Settings& settings = report.settings;
    std::string text = report::verdict_paragraph(report.is_passed(), verdict_sentence(report));
    text += concat("<p>", settings.step_count, " steps of ", settings.time_step, " fs at ", settings.temperature,
                   " K, on ", html_escaped(report.device), " in ", html_escaped(report.precision), " precision",
                   report.against.empty() ? "" : ", against " + html_escaped(report.against), ". mlff ",
                   MLFF_VERSION_STRING, "</p>\n");
    text += recommendation_list(report);
    for (const SystemReport& system : report.systems) text += section(system, report);
    return report::html_page("Validation of " + report.model, text);
}

}  // namespace mlff::validate
