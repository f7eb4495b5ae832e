// SPDX-License-Identifier: MIT
#include "phonons_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "core/elements.h"
#include "core/error.h"
#include "dynamics/units.h"
#include "tools/report/html_page.h"
#include "tools/report/svg_plot.h"

namespace mlff::app {
namespace {

using phonons::BandPoint;
using phonons::Crystal;
using phonons::Setup;
using phonons::ThermalPoint;
using report::Plot;

constexpr double kPhononKilojoule = 96.48533212331001;  // of 1 eV
constexpr double kPhononGigapascal = 160.21766208;      // of 1 eV/angstrom^3

template <class... Values>
std::string phonon_line(const char* format, Values... values) {
    char text[256];
    std::snprintf(text, sizeof text, format, values...);
    return text;
}

// "Na4Cl4"
std::string phonon_formula(const Crystal& crystal) {
    std::vector<std::pair<int32_t, size_t>> counts;
    for (const int32_t number : crystal.atomic_numbers) {
        const auto same = std::find_if(counts.begin(), counts.end(), [&](const auto& e) { return e.first == number; });
        if (same == counts.end())
            counts.emplace_back(number, 1);
        else
            ++same->second;
    }
    std::string text;
    for (const auto& [number, count] : counts)
        text += std::string(element_symbol(number)) + (count > 1 ? std::to_string(count) : "");
    return text;
}

// What rounding leaves of zero is 0.
double shown_phonon(double value) { return std::abs(value) < 5e-4 ? 0.0 : value; }

std::string path_label(const std::string& label) { return label == "G" ? "\u0393" : label; }

// Labels of the ends of lines by distance; where two pieces meet, "U|K".
std::vector<std::pair<double, std::string>> ticks_of(const std::vector<BandPoint>& path) {
    std::vector<std::pair<double, std::string>> ticks;
    for (size_t i = 0; i < path.size(); ++i) {
        if (path[i].label.empty()) continue;
        const std::string label = path_label(path[i].label);
        if (ticks.empty() || (!path[i].begins_line || path[i].begins_piece)) {
            if (!ticks.empty() && path[i].begins_piece)
                ticks.back().second += "|" + label;
            else
                ticks.emplace_back(path[i].distance, label);
        }
    }
    return ticks;
}

size_t path_point_of_highest(const PhononResults& results) {
    size_t best = 0;
    for (size_t i = 0; i < results.path.size(); ++i)
        if (results.path_frequencies[i].back() > results.path_frequencies[best].back()) best = i;
    return best;
}
size_t path_point_of_lowest(const PhononResults& results) {
    size_t best = 0;
    for (size_t i = 0; i < results.path.size(); ++i)
        if (results.path_frequencies[i].front() < results.path_frequencies[best].front()) best = i;
    return best;
}

std::string wave_vector_text(const Vec3& q) {
    return phonon_line("(%.4g %.4g %.4g)", q[0] + 0.0, q[1] + 0.0, q[2] + 0.0);
}

std::vector<std::string> cell_sentences(const Setup& setup, const PhononResults& results) {
    std::vector<std::string> lines;
    lines.push_back(results.model.empty() ? results.input + ": " + phonon_formula(setup.unit_cell)
                                          : concat(results.input, ": ", phonon_formula(setup.unit_cell), ", model ",
                                                   results.model, ", ", results.device, ", ", results.precision));
    if (setup.space_group)
        lines.push_back(concat("space group ", setup.space_group->symbol, " (", setup.space_group->number, ")"));
    lines.push_back(concat("primitive cell: ", phonon_formula(setup.primitive), ", ", setup.primitive.atom_count(),
                           " of ", setup.unit_cell.atom_count(), " atoms of the cell"));
    lines.push_back(concat("supercell: ", setup.map.cell_count(), " primitive cells, ", setup.supercell.atom_count(),
                           " atoms; ", results.displacements.size(),
                           results.displacements.size() == 1 ? " displaced supercell" : " displaced supercells"));
    if (results.rest)
        lines.push_back(phonon_line("at rest: largest force %.2g eV/A", results.rest->largest_force) +
                        (results.rest->pressure
                             ? phonon_line(", pressure %.3f GPa", *results.rest->pressure * kPhononGigapascal)
                             : ""));
    lines.push_back(
        phonon_line("before they were imposed: acoustic sum rule violated by %.2g eV/A^2, index symmetry by "
                    "%.2g eV/A^2",
                    results.constants.acoustic_violation, results.constants.index_violation));
    if (results.imposes_mirrors)
        lines.push_back("the model distinguishes mirror images: the mirror symmetry of the crystal is imposed");
    return lines;
}

std::vector<std::string> mode_sentences(const PhononResults& results) {
    const size_t high = path_point_of_highest(results), low = path_point_of_lowest(results);
    const auto& frequencies = results.path_frequencies;
    std::vector<std::string> lines;
    lines.push_back(phonon_line("on the path: frequencies from %.4f to %.4f THz, at ",
                                shown_phonon(frequencies[low].front()), frequencies[high].back()) +
                    wave_vector_text(results.path[low].wave_vector) + " and " +
                    wave_vector_text(results.path[high].wave_vector));
    const int64_t on_path = phonons::imaginary_count(frequencies),
                  on_mesh = phonons::imaginary_count(results.modes.frequencies);
    const size_t modes = frequencies.front().size();
    if (on_path + on_mesh == 0)
        lines.push_back("no imaginary modes");
    else
        lines.push_back(concat("IMAGINARY modes, shown as negative frequencies: ", on_path, " of ",
                               modes * frequencies.size(), " on the path, ", on_mesh, " of ",
                               modes * results.modes.frequencies.size(), " on the mesh (",
                               results.modes.frequencies.size(), " points that symmetry does not make equal)"));
    return lines;
}

std::string phonon_mesh_text(const std::array<int64_t, 3>& mesh) {
    return concat(mesh[0], " x ", mesh[1], " x ", mesh[2]);
}

std::vector<std::string> phonon_thermal_cells(const ThermalPoint& point) {
    return {phonon_line("%.10g", point.temperature), phonon_line("%.6f", point.free_energy * kPhononKilojoule),
            phonon_line("%.6f", point.entropy * kPhononKilojoule * 1000),
            phonon_line("%.6f", point.heat_capacity * kPhononKilojoule * 1000)};
}

const std::vector<std::string> kPhononThermalHeader = {"T/K", "free energy/(kJ/mol)", "entropy/(J/(K mol))",
                                                       "heat capacity/(J/(K mol))"};

// Rows of the table that is printed: labelled points of the path, each once.
std::vector<size_t> labelled_points(const std::vector<BandPoint>& path) {
    std::vector<size_t> rows;
    for (size_t i = 0; i < path.size(); ++i) {
        if (path[i].label.empty()) continue;
        const bool is_known = std::any_of(rows.begin(), rows.end(), [&](size_t row) {
            return path[row].label == path[i].label && path[row].wave_vector == path[i].wave_vector;
        });
        if (!is_known) rows.push_back(i);
    }
    return rows;
}

Plot dispersion_plot(const PhononResults& results) {
    Plot plot{"Dispersion", "", "frequency/THz", {}};
    report::Curve all;  // one curve, whose bands are parted by gaps
    const size_t modes = results.path_frequencies.front().size();
    const double gap = std::numeric_limits<double>::quiet_NaN();
    for (size_t mode = 0; mode < modes; ++mode) {
        for (size_t i = 0; i < results.path.size(); ++i) {
            if (results.path[i].begins_piece) all.x.push_back(gap), all.y.push_back(gap);
            all.x.push_back(results.path[i].distance);
            all.y.push_back(results.path_frequencies[i][mode]);
        }
        all.x.push_back(gap), all.y.push_back(gap);
    }
    plot.curves.push_back(std::move(all));
    plot.x_names = ticks_of(results.path);
    for (const auto& [distance, label] : plot.x_names) plot.marks.push_back({distance, ""});
    plot.horizontal = 0;
    return plot;
}

std::vector<Plot> phonon_plots(const PhononResults& results) {
    std::vector<Plot> plots = {dispersion_plot(results)};
    plots.push_back({"Density of states",
                     "frequency/THz",
                     "states/(1/THz) in a primitive cell",
                     {{"", results.density.frequencies, results.density.states}}});
    report::Curve heat, entropy;
    for (const ThermalPoint& point : results.thermal_curve) {
        heat.x.push_back(point.temperature);
        heat.y.push_back(point.heat_capacity * kPhononKilojoule * 1000);
        entropy.x.push_back(point.temperature);
        entropy.y.push_back(point.entropy * kPhononKilojoule * 1000);
    }
    plots.push_back({"Heat capacity at constant volume", "temperature/K", "J/(K mol) of primitive cells", {heat}});
    plots.push_back({"Entropy", "temperature/K", "J/(K mol) of primitive cells", {entropy}});
    return plots;
}

nlohmann::json crystal_json(const Crystal& crystal) {
    nlohmann::json symbols = nlohmann::json::array(), positions = nlohmann::json::array();
    for (size_t atom = 0; atom < crystal.atom_count(); ++atom) {
        symbols.push_back(element_symbol(crystal.atomic_numbers[atom]));
        positions.push_back(crystal.position(atom));
    }
    return {{"lattice", crystal.lattice}, {"symbols", symbols}, {"positions", positions}, {"masses", crystal.masses}};
}

std::vector<double> phonons_per_cm(std::vector<double> frequencies) {
    for (double& value : frequencies) value *= phonons::kPerCmOfTHz;
    return frequencies;
}

}  // namespace

std::string phonon_text(const Setup& setup, const PhononResults& results) {
    std::string text;
    for (const std::string& line : cell_sentences(setup, results)) text += line + "\n";
    text += "\nfrequencies/THz (1 THz = 33.35641 1/cm)\n";
    constexpr size_t kMostShown = 12;
    for (const size_t row : labelled_points(results.path)) {
        text += phonon_line("%6s %-24s", results.path[row].label.c_str(),
                            wave_vector_text(results.path[row].wave_vector).c_str());
        const std::vector<double>& frequencies = results.path_frequencies[row];
        for (size_t k = 0; k < std::min(frequencies.size(), kMostShown); ++k)
            text += phonon_line(" %8.4f", shown_phonon(frequencies[k]));
        text += frequencies.size() > kMostShown ? " ...\n" : "\n";
    }
    for (const std::string& line : mode_sentences(results)) text += line + "\n";
    text += concat("\nper mole of primitive cells (", phonon_formula(setup.primitive), "), ",
                   phonon_mesh_text(results.mesh), " wave vectors:\n") +
            phonon_line("zero-point energy %.6f kJ/mol\n", zero_point_energy(results.modes) * kPhononKilojoule);
    text += phonon_line("%8s%24s%24s%28s\n", kPhononThermalHeader[0].c_str(), kPhononThermalHeader[1].c_str(),
                        kPhononThermalHeader[2].c_str(), kPhononThermalHeader[3].c_str());
    for (const ThermalPoint& point : results.thermal) {
        const std::vector<std::string> cells = phonon_thermal_cells(point);
        text +=
            phonon_line("%8s%24s%24s%28s\n", cells[0].c_str(), cells[1].c_str(), cells[2].c_str(), cells[3].c_str());
    }
    return text;
}

nlohmann::json phonon_json(const Setup& setup, const PhononResults& results) {
    using Json = nlohmann::json;
    Json path = Json::array(), thermal = Json::array(), displacements = Json::array(), ticks = Json::array();
    for (size_t i = 0; i < results.path.size(); ++i) {
        const BandPoint& point = results.path[i];
        path.push_back({{"q", point.wave_vector},
                        {"distance", point.distance},
                        {"label", point.label.empty() ? Json() : Json(point.label)},
                        {"begins_piece", point.begins_piece},
                        {"frequencies", results.path_frequencies[i]},
                        {"frequencies_per_cm", phonons_per_cm(results.path_frequencies[i])}});
    }
    for (const ThermalPoint& point : results.thermal)
        thermal.push_back({{"temperature", point.temperature},
                           {"free_energy", point.free_energy * kPhononKilojoule},
                           {"entropy", point.entropy * kPhononKilojoule * 1000},
                           {"heat_capacity", point.heat_capacity * kPhononKilojoule * 1000}});
    for (const Displacement& displacement : results.displacements)
        displacements.push_back({{"atom", displacement.atom}, {"vector", displacement.vector}});
    Json rest;
    if (results.rest)
        rest = {{"largest_force", results.rest->largest_force},
                {"pressure_gpa", results.rest->pressure ? Json(*results.rest->pressure * kPhononGigapascal) : Json()}};
    const auto name_or_null = [](const std::string& name) { return name.empty() ? Json() : Json(name); };
    return {{"model", name_or_null(results.model)},
            {"device", name_or_null(results.device)},
            {"precision", name_or_null(results.precision)},
            {"units",
             {{"frequencies", "THz"},
              {"frequencies_per_cm", "1/cm"},
              {"q", "reciprocal vectors of the primitive cell"},
              {"distance", "1/angstrom, with 2 pi"},
              {"free_energy", "kJ/mol of primitive cells, with the zero-point energy"},
              {"entropy", "J/(K mol) of primitive cells"},
              {"heat_capacity", "J/(K mol) of primitive cells, at constant volume"},
              {"states", "1/THz in a primitive cell"},
              {"force_constants", "eV/angstrom^2"}}},
            {"symmetry_finder", setup.space_group ? Json("spglib") : Json()},
            {"space_group", setup.space_group
                                ? Json{{"number", setup.space_group->number}, {"symbol", setup.space_group->symbol}}
                                : Json()},
            {"cell", crystal_json(setup.unit_cell)},
            {"primitive_cell", crystal_json(setup.primitive)},
            {"supercell", {{"atoms", setup.supercell.atom_count()}, {"primitive_cells", setup.map.cell_count()}}},
            {"displacements", displacements},
            {"at_rest", rest},
            {"force_constants",
             {{"acoustic_sum_rule_violation", results.constants.acoustic_violation},
              {"index_symmetry_violation", results.constants.index_violation},
              {"mirror_symmetry_imposed", results.imposes_mirrors}}},
            {"path_lattice", name_or_null(results.lattice)},
            {"path", path},
            {"mesh", results.mesh},
            {"density_of_states",
             {{"frequencies", results.density.frequencies},
              {"states", results.density.states},
              {"gaussian_width", results.density.width}}},
            {"imaginary_modes",
             {{"path", phonons::imaginary_count(results.path_frequencies)},
              {"mesh", phonons::imaginary_count(results.modes.frequencies)}}},
            {"zero_point_energy", zero_point_energy(results.modes) * kPhononKilojoule},
            {"thermal", thermal}};
}

std::string phonon_markdown(const Setup& setup, const PhononResults& results) {
    std::string text = "# Phonons of " + phonon_formula(setup.primitive) + "\n\n";
    for (const std::string& line : cell_sentences(setup, results)) text += "- " + line + "\n";
    for (const std::string& line : mode_sentences(results)) text += "- " + line + "\n";
    text += "\n| point | wave vector | frequencies/THz |\n|---|---|---|\n";
    for (const size_t row : labelled_points(results.path)) {
        text += "| " + results.path[row].label + " | " + wave_vector_text(results.path[row].wave_vector) + " |";
        for (const double value : results.path_frequencies[row]) text += phonon_line(" %.4f", shown_phonon(value));
        text += " |\n";
    }
    text += "\nPer mole of primitive cells, " + phonon_mesh_text(results.mesh) + " wave vectors:\n\n|";
    for (const std::string& name : kPhononThermalHeader) text += " " + name + " |";
    text += "\n|---|---|---|---|\n";
    for (const ThermalPoint& point : results.thermal) {
        text += "|";
        for (const std::string& cell : phonon_thermal_cells(point)) text += " " + cell + " |";
        text += "\n";
    }
    return text;
}

std::string phonon_html(const Setup& setup, const PhononResults& results) {
    std::string body = "<section><ul>\n";
    for (const std::string& line : cell_sentences(setup, results))
        body += "<li>" + report::html_escaped(line) + "</li>\n";
    for (const std::string& line : mode_sentences(results)) body += "<li>" + report::html_escaped(line) + "</li>\n";
    body += "</ul>\n<div class=\"plots\">\n";
    for (const Plot& plot : phonon_plots(results)) body += report::svg(plot);
    body += "</div></section>\n<section><h2>Frequencies</h2>\n";
    std::vector<std::vector<report::Cell>> rows;
    for (const size_t row : labelled_points(results.path)) {
        std::string values;
        for (const double value : results.path_frequencies[row])
            values += phonon_line(values.empty() ? "%.4f" : ", %.4f", shown_phonon(value));
        rows.push_back({{path_label(results.path[row].label)},
                        {wave_vector_text(results.path[row].wave_vector)},
                        {values, "note"}});
    }
    body += report::html_table({"point", "wave vector", "frequencies/THz"}, rows);
    body += "</section>\n<section><h2>Thermal properties</h2>\n<p>Per mole of primitive cells, " +
            phonon_mesh_text(results.mesh) + " wave vectors; " +
            phonon_line("zero-point energy %.4f kJ/mol.</p>\n", zero_point_energy(results.modes) * kPhononKilojoule);
    rows.clear();
    for (const ThermalPoint& point : results.thermal) {
        rows.emplace_back();
        for (const std::string& cell : phonon_thermal_cells(point)) rows.back().push_back({cell, "number"});
    }
    body += report::html_table(kPhononThermalHeader, rows) + "</section>\n";
    return report::html_page("Phonons of " + phonon_formula(setup.primitive), body);
}

}  // namespace mlff::app
