// SPDX-License-Identifier: MIT
#include "neb_output.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "command.h"
#include "core/error.h"
#include "tools/report/html_page.h"
#include "tools/report/svg_plot.h"
#include "trust/formulas.h"

namespace mlff::app {
namespace {

constexpr double kKilojoulePerMole = 96.48533212331;  // of an eV

std::string with_digits(double number, int digits) {
    const bool is_zero = std::abs(number) < 0.5 * std::pow(10.0, -digits);  // and not -0
    std::ostringstream text;
    text << std::fixed << std::setprecision(digits) << (is_zero ? 0.0 : number);
    return text.str();
}

std::string energy_text(double energy) {
    return with_digits(energy, 4) + " eV (" + with_digits(energy * kKilojoulePerMole, 1) + " kJ/mol)";
}

std::vector<double> relative_to_first(const std::vector<double>& energies, double first) {
    std::vector<double> relative;
    for (const double energy : energies) relative.push_back(energy - first);
    return relative;
}

report::Plot energy_plot(const NebResult& result) {
    const PathSummary& summary = result.summary;
    const double first = summary.energies.front();
    report::Plot plot;
    plot.title = "Energy along the path";
    plot.x_label = "distance along the path, A";
    plot.y_label = "energy above the first end, eV";
    plot.style = report::Plot::Style::points;
    plot.curves = {{"images", summary.distances, relative_to_first(summary.energies, first)}};
    plot.overlays = {{"", summary.curve.distances, relative_to_first(summary.curve.energies, first)}};
    plot.overlay_name = "dashed: from energies and slopes of the images";
    if (summary.highest) plot.marks = {{summary.top_distance, result.is_exact() ? "saddle" : "highest point"}};
    return plot;
}

std::vector<std::vector<report::Cell>> image_rows(const NebResult& result) {
    std::vector<std::vector<report::Cell>> rows;
    const PathSummary& summary = result.summary;
    for (size_t k = 0; k < summary.energies.size(); ++k) {
        rows.push_back({{std::to_string(k), "number"},
                        {with_digits(summary.distances[k], 4), "number"},
                        {with_digits(summary.energies[k], 6), "number"},
                        {with_digits(summary.energies[k] - summary.energies.front(), 6), "number"},
                        {with_digits(summary.slopes[k], 4), "number"},
                        {with_digits(result.largest_force(k), 4), "number"}});
        for (const std::vector<double>* doubts : {&result.expected_errors, &result.spreads})
            if (!doubts->empty()) rows.back().push_back({with_digits((*doubts)[k], 4), "number"});
    }
    return rows;
}

std::vector<std::string> image_header(const NebResult& result) {
    std::vector<std::string> header = {"image",       "distance/A",   "energy/eV",
                                       "relative/eV", "slope/(eV/A)", "max|F|/(eV/A)"};
    if (!result.expected_errors.empty()) header.push_back("expected error/(eV/A)");
    if (!result.spreads.empty()) header.push_back("max sigma_F/(eV/A)");
    return header;
}

std::vector<std::string> barrier_lines(const NebResult& result) {
    const PathSummary& summary = result.summary;
    return {"barrier forward  " + energy_text(summary.barrier_forward),
            "barrier backward " + energy_text(summary.barrier_backward),
            "reaction energy  " + energy_text(summary.reaction_energy)};
}

std::string verdict_sentence(const NebResult& result) {
    const std::string force = with_digits(result.band_force, 4) + " eV/A on the band";
    if (result.is_stopped) return "Stopped by a signal; largest force " + force + ".";
    if (!result.is_converged) return "Not converged; largest force " + force + ".";
    return "Converged; largest force " + force + ".";
}

}  // namespace

void NebResult::add_doubts(const FrameResult& image) {
    const size_t index = std::max(expected_errors.size(), spreads.size());
    if (image.has_spread) spreads.push_back(image.sigma_max_force);
    if (image.expected_errors.empty()) return;
    expected_errors.push_back(*std::max_element(image.expected_errors.begin(), image.expected_errors.end()));
    for (size_t atom = 0; atom < image.atom_count; ++atom)
        if (trust::is_outside(image.alarm_error, image.expected_errors[atom], image.novelties[atom])) {
            unknown_images.push_back(index);
            return;
        }
}

double NebResult::largest_force(size_t image) const {
    Image forces = path.results[image].forces;
    for (size_t i = 0; i < forces.size(); ++i)
        if (!atoms.moves(i / 3)) forces[i] = 0;
    return largest_move(forces);
}

std::string saddle_sentence(const NebResult& result) {
    const PathSummary& summary = result.summary;
    if (!summary.highest) return "no image is higher than the ends: there is no saddle among the images";
    const size_t image = *summary.highest;
    std::string text = concat(result.is_exact() ? "saddle: image " : "highest image ", image, ", ",
                              with_digits(summary.distances[image], 3), " A along the path, largest force ",
                              with_digits(result.largest_force(image), 4), " eV/A");
    if (result.is_refined) text += ", refined";
    if (!result.saddle) return text;
    const SaddleCheck& check = *result.saddle;
    text += concat("; lowest curvature", check.curvatures.size() > 1 ? "s " : " ", with_digits(check.curvatures[0], 3));
    if (check.curvatures.size() > 1) text += " and " + with_digits(check.curvatures[1], 3);
    text += " eV/A^2";
    return text + (check.has_one_negative() ? ": exactly one is negative"
                                            : ": a saddle has exactly one that is negative, so this is none");
}

std::vector<std::string> path_notes(const NebResult& result) {
    std::vector<std::string> notes;
    const PathSummary& summary = result.summary;
    if (!result.unknown_images.empty()) {
        std::string images;
        for (const size_t image : result.unknown_images) images += (images.empty() ? "" : ", ") + std::to_string(image);
        notes.push_back(
            concat(result.unknown_images.size() == 1 ? "image " : "images ", images,
                   ": atoms are unlike most in training, expect force errors up to ",
                   with_digits(*std::max_element(result.expected_errors.begin(), result.expected_errors.end()), 2),
                   " eV/A; mlff eval names the atoms"));
    }
    for (const size_t minimum : summary.minima)
        notes.push_back(concat("image ", minimum,
                               " lies in a valley between two ridges: take it, relaxed, as the end "
                               "of one path and the start of another"));
    if (!summary.highest) {
        notes.push_back(summary.top_energy > std::max(summary.energies.front(), summary.energies.back()) + 1e-3
                            ? "the highest point is between two images: more --images would show it"
                            : "the energy is highest at an end: there is no barrier beyond the reaction energy");
        return notes;
    }
    if (result.saddle && !result.saddle->is_converged)
        notes.push_back("the lowest curvatures may be lower still: the search for them was ended early");
    if (result.saddle && result.saddle->has_one_negative() && result.saddle->overlap < 0.5)
        notes.push_back(concat("the lowest curvature is not along the path (overlap ",
                               with_digits(result.saddle->overlap, 2), "): the path may need more --images"));
    const size_t image = *summary.highest;
    const double spacing = 0.5 * (summary.distances[image + 1] - summary.distances[image - 1]);
    if (result.is_refined && result.refined_distance > spacing)
        notes.push_back(concat("the refined saddle is ", with_digits(result.refined_distance, 2),
                               " A away from where the highest image was: it may belong to another path"));
    return notes;
}

void print_path(const NebResult& result) {
    const std::vector<std::string> header = image_header(result);
    const std::vector<int> widths = {6, 12, 18, 14, 14, 16, 24, 24};
    const auto print_row = [&](const auto& text_of_column) {
        for (size_t k = 0; k < header.size(); ++k) std::cout << std::setw(widths[k]) << text_of_column(k);
        std::cout << "\n";
    };
    std::cout << "model " << result.model << ", " << result.device << ", " << result.precision << "\n";
    print_row([&](size_t k) { return header[k]; });
    for (const auto& row : image_rows(result)) print_row([&](size_t k) { return row[k].text; });
    for (const std::string& line : barrier_lines(result)) std::cout << line << "\n";
    std::cout << saddle_sentence(result) << "\n";
    for (const std::string& note : path_notes(result)) std::cout << "note: " << note << "\n";
}

nlohmann::json path_json(const NebResult& result) {
    using nlohmann::json;
    const PathSummary& summary = result.summary;
    json images = json::array();
    for (size_t k = 0; k < summary.energies.size(); ++k)
        images.push_back({{"distance", summary.distances[k]},
                          {"energy", summary.energies[k]},
                          {"slope", summary.slopes[k]},
                          {"largest_force", result.largest_force(k)},
                          {"expected_error", result.expected_errors.empty() ? json() : json(result.expected_errors[k])},
                          {"sigma_max_force", result.spreads.empty() ? json() : json(result.spreads[k])}});
    json saddle;
    if (summary.highest) {
        const size_t image = *summary.highest;
        json positions = json::array();
        const Image& image_positions = result.path.images[image];
        for (size_t i = 0; i + 2 < image_positions.size(); i += 3)
            positions.push_back({image_positions[i], image_positions[i + 1], image_positions[i + 2]});
        saddle = {{"image", image},
                  {"distance", summary.distances[image]},
                  {"energy", summary.energies[image]},
                  {"largest_force", result.largest_force(image)},
                  {"climbed", result.climbed},
                  {"refined", result.is_refined},
                  {"positions", positions},
                  {"curvatures", result.saddle ? json(result.saddle->curvatures) : json()},
                  {"overlap", result.saddle ? json(result.saddle->overlap) : json()},
                  {"one_negative", result.saddle ? json(result.saddle->has_one_negative()) : json()}};
    }
    return {{"model", result.model},
            {"device", result.device},
            {"precision", result.precision},
            {"method", result.method},
            {"converged", result.is_converged},
            {"stopped", result.is_stopped},
            {"moves", result.band_moves},
            {"refinement_moves", result.refinement_moves},
            {"largest_force", result.band_force},
            {"barrier_forward", summary.barrier_forward},
            {"barrier_backward", summary.barrier_backward},
            {"reaction_energy", summary.reaction_energy},
            {"saddle", saddle},
            {"minima", summary.minima},
            {"unknown_images", result.unknown_images},
            {"images", images}};
}

void write_path_report(const std::string& folder, const NebResult& result) {
    const std::string title = "Reaction path with " + result.model;
    std::string body = report::verdict_paragraph(result.is_converged, verdict_sentence(result));
    std::string text = "# " + title + "\n\n" + verdict_sentence(result) + "\n\n";
    std::vector<std::string> lines = barrier_lines(result);
    lines.push_back(saddle_sentence(result));
    for (const std::string& note : path_notes(result)) lines.push_back(note);
    body += "<ul>\n";
    for (const std::string& line : lines) {
        body += "<li>" + report::html_escaped(line) + "</li>\n";
        text += "- " + line + "\n";
    }
    body += "</ul>\n" + report::svg(energy_plot(result)) + "<h2>Images</h2>\n" +
            report::html_table(image_header(result), image_rows(result));
    text += "\n|";
    for (std::string name : image_header(result)) {
        std::replace(name.begin(), name.end(), '|', ' ');  // ends a cell in Markdown
        text += " " + name + " |";
    }
    text += "\n|";
    for (size_t k = 0; k < image_header(result).size(); ++k) text += "---|";
    for (const auto& row : image_rows(result)) {
        text += "\n|";
        for (const report::Cell& cell : row) text += " " + cell.text + " |";
    }
    write_text(folder + "/report.json", path_json(result).dump(1) + "\n");
    write_text(folder + "/report.md", text + "\n");
    write_text(folder + "/report.html", report::html_page(title, body));
}

std::string path_frames(const Frame& start, const NebResult& result) {
    Frame frame = start;
    std::erase_if(frame.columns, [](const AtomColumn& column) {
        return column.name == "velocities" || column.name == "momenta" || column.name == "energies" ||
               column.name == "move_mask";
    });
    std::erase_if(frame.info, [](const auto& entry) {
        return entry.first == "stress" || entry.first == "virial" || entry.first == "converged";
    });
    if (result.atoms.has_fixed_atoms()) {
        std::vector<bool> moves;
        for (size_t atom = 0; atom < result.atoms.atom_count(); ++atom) moves.push_back(result.atoms.moves(atom));
        frame.columns.push_back({"move_mask", 1, moves});
    }
    if (!result.head.empty()) frame.set_info("head", result.head);
    std::ostringstream text;
    for (size_t k = 0; k < result.path.images.size(); ++k) {
        frame.positions = result.path.images[k];
        frame.set_info("energy", result.path.results[k].energy);
        frame.set_info("path_distance", result.summary.distances[k]);
        frame.set_column("forces", 3, result.path.results[k].forces);
        write_extxyz(text, frame);
    }
    return text.str();
}

}  // namespace mlff::app
