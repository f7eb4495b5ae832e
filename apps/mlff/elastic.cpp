// SPDX-License-Identifier: MIT
// mlff elastic: elastic constants and moduli of crystals.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <numbers>
#include <sstream>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "moving_atoms.h"
#include "plan_warning.h"
#include "progress_line.h"
#include "properties/elastic.h"
#include "properties/strained_crystal.h"
#include "sessions.h"
#include "tools/report/html_page.h"
#include "tools/report/svg_plot.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;

struct ElasticCommandOptions {
    std::string input, json, report;
    ModelOptions model;
    ElasticOptions elastic;
    bool no_relax = false, clamped = false;
};

struct ElasticFrame {
    int64_t index = 0;
    ElasticConstants constants;
};

// 0 and not -0 where the digits shown are all zero.
std::string elastic_number(double value, int digits) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(digits) << (std::abs(value) < 0.5 * std::pow(10.0, -digits) ? 0.0 : value);
    return text.str();
}

struct ElasticLine {
    std::string name;
    std::vector<std::string> values;
};

// Lines of text: a name and one value or, for the means, three.
std::vector<ElasticLine> moduli_lines(const ElasticConstants& constants) {
    if (!constants.moduli) return {};
    const ElasticModuli& moduli = *constants.moduli;
    const auto means = [](const ElasticModuli::Means& of) {
        return std::vector<std::string>{elastic_number(of.voigt, 2), elastic_number(of.reuss, 2),
                                        elastic_number(of.hill, 2)};
    };
    return {{"bulk modulus/GPa", means(moduli.bulk)},
            {"shear modulus/GPa", means(moduli.shear)},
            {"Young's modulus/GPa", {"", "", elastic_number(moduli.young, 2)}},
            {"Poisson's ratio", {"", "", elastic_number(moduli.poisson, 4)}},
            {"universal anisotropy", {elastic_number(moduli.universal_anisotropy, 4)}}};
}

std::vector<ElasticLine> quality_lines(const ElasticConstants& constants) {
    double residual = 0;
    for (const double stress : constants.residual_stress) residual = std::max(residual, std::abs(stress));
    std::vector<ElasticLine> lines = {{"volume/A^3", {elastic_number(cell_volume(constants.crystal), 4)}},
                                      {"moves", {std::to_string(constants.move_count)}},
                                      {"residual stress/GPa", {elastic_number(residual, 6)}}};
    if (!constants.has_stiffness) return lines;
    lines.push_back({"asymmetry/GPa", {elastic_number(constants.asymmetry, 4)}});
    lines.push_back({"change by extrapolation/GPa", {elastic_number(constants.extrapolation_change, 4)}});
    ElasticLine eigenvalues{"eigenvalues/GPa", {}};
    for (const double value : constants.eigenvalues) eigenvalues.values.push_back(elastic_number(value, 2));
    lines.push_back(eigenvalues);
    lines.push_back({"mechanically stable", {constants.is_stable ? "yes" : "no"}});
    return lines;
}

void print_elastic_line(const ElasticLine& line) {
    std::cout << "  " << std::left << std::setw(28) << line.name << std::right;
    for (const std::string& value : line.values) std::cout << std::setw(11) << value;
    std::cout << "\n";
}

void print_elastic_frame(const ElasticFrame& frame) {
    const ElasticConstants& constants = frame.constants;
    std::cout << "frame " << frame.index << ": " << constants.crystal.atom_count() << " atoms\n";
    for (const ElasticLine& line : quality_lines(constants)) print_elastic_line(line);
    if (constants.has_stiffness) {
        print_elastic_line({"stiffness/GPa", {kVoigtNames.begin(), kVoigtNames.end()}});
        for (size_t i = 0; i < 6; ++i) {
            ElasticLine line{std::string(26, ' ') + kVoigtNames[i], {}};
            for (const double value : constants.stiffness[i]) line.values.push_back(elastic_number(value, 2));
            print_elastic_line(line);
        }
    }
    if (constants.moduli) {
        print_elastic_line({"means", {"Voigt", "Reuss", "Hill"}});
        for (const ElasticLine& line : moduli_lines(constants)) print_elastic_line(line);
    }
    std::cout << "\n" << std::flush;
}

Json means_json(const ElasticModuli::Means& means) {
    return {{"voigt", means.voigt}, {"reuss", means.reuss}, {"hill", means.hill}};
}

Json elastic_frame_json(const ElasticConstants& constants) {
    const bool has_constants = constants.has_stiffness;
    Json moduli;
    if (constants.moduli)
        moduli = {{"bulk", means_json(constants.moduli->bulk)},
                  {"shear", means_json(constants.moduli->shear)},
                  {"young", constants.moduli->young},
                  {"poisson", constants.moduli->poisson},
                  {"universal_anisotropy", constants.moduli->universal_anisotropy}};
    Json stresses = Json::array();
    for (const StrainedStress& point : constants.stresses)
        stresses.push_back(
            {{"component", kVoigtNames[point.component]}, {"strain", point.strain}, {"stress", point.stress}});
    return {{"atoms", constants.crystal.atom_count()},
            {"cell", constants.crystal.environment.cell},
            {"volume", cell_volume(constants.crystal)},
            {"moves", constants.move_count},
            {"residual_stress", constants.residual_stress},
            {"stresses", has_constants ? stresses : Json()},
            {"stiffness", has_constants ? Json(constants.stiffness) : Json()},
            {"asymmetry", has_constants ? Json(constants.asymmetry) : Json()},
            {"extrapolation_change", has_constants ? Json(constants.extrapolation_change) : Json()},
            {"eigenvalues", has_constants ? Json(constants.eigenvalues) : Json()},
            {"stable", has_constants ? Json(constants.is_stable) : Json()},
            {"compliance", constants.compliance ? Json(*constants.compliance) : Json()},
            {"moduli", moduli},
            {"problem", constants.problem.empty() ? Json() : Json(constants.problem)}};
}

Json elastic_json(const ElasticCommandOptions& options, const std::vector<ElasticFrame>& frames,
                  const Session& session) {
    Json json = {{"model", options.model.model},
                 {"device", session.device_name()},
                 {"precision", precision_name(session.precision())},
                 {"strain", options.elastic.strain},
                 {"clamped", options.clamped},
                 {"components", kVoigtNames},
                 {"units",
                  {{"stiffness", "GPa"},
                   {"compliance", "1/GPa"},
                   {"moduli", "GPa"},
                   {"stress", "GPa"},
                   {"volume", "A^3"},
                   {"cell", "A"}}},
                 {"frames", Json::array()}};
    for (const ElasticFrame& frame : frames) json["frames"].push_back(elastic_frame_json(frame.constants));
    return json;
}

// Along directions of three planes, against the angle from the first axis.
report::Plot young_plot(const ElasticFrame& frame) {
    report::Plot plot;
    plot.title = concat("frame ", frame.index, ": Young's modulus by direction");
    plot.x_label = "angle from the first axis of the plane, degrees";
    plot.y_label = "Young's modulus, GPa";
    constexpr const char* kAxes = "xyz";
    for (size_t first = 0; first < 3; ++first) {
        const size_t second = (first + 1) % 3;
        report::Curve curve{std::string{kAxes[first], kAxes[second]}, {}, {}};
        for (int degrees = 0; degrees <= 180; degrees += 2) {
            const double angle = degrees * std::numbers::pi / 180;
            Vec3 direction{};
            direction[first] = std::cos(angle);
            direction[second] = std::sin(angle);
            curve.x.push_back(degrees);
            curve.y.push_back(young_modulus_along(*frame.constants.compliance, direction));
        }
        plot.curves.push_back(curve);
    }
    return plot;
}

// What the constants are made of: each stress against its own strain.
report::Plot stress_plot(const ElasticFrame& frame) {
    report::Plot plot;
    plot.title = concat("frame ", frame.index, ": stress against its strain");
    plot.x_label = "strain";
    plot.y_label = "stress, GPa";
    plot.style = report::Plot::Style::line_and_points;
    for (size_t component = 0; component < 6; ++component) {
        report::Curve curve{kVoigtNames[component], {}, {}};
        for (const StrainedStress& point : frame.constants.stresses) {
            if (point.component != component) continue;
            curve.x.push_back(point.strain);
            curve.y.push_back(point.stress[component]);
        }
        plot.curves.push_back(curve);
    }
    return plot;
}

std::string elastic_title(const ElasticCommandOptions& options) {
    return concat("Elastic constants: ", options.input, ", ", options.model.model);
}

// Of lines and of the stiffness: what follows the first column is numbers.
std::string elastic_table(const std::vector<std::string>& header, const std::vector<ElasticLine>& lines) {
    std::vector<std::vector<report::Cell>> rows;
    for (const ElasticLine& line : lines) {
        std::vector<report::Cell> row = {{line.name}};
        for (const std::string& value : line.values) row.push_back({value, "number"});
        rows.push_back(row);
    }
    return report::html_table(header, rows);
}

std::vector<ElasticLine> stiffness_lines(const ElasticConstants& constants) {
    std::vector<ElasticLine> lines;
    for (size_t i = 0; i < 6; ++i) {
        lines.push_back({kVoigtNames[i], {}});
        for (const double value : constants.stiffness[i]) lines.back().values.push_back(elastic_number(value, 2));
    }
    return lines;
}

std::vector<std::string> stiffness_header() {
    std::vector<std::string> header = {"stiffness/GPa"};
    header.insert(header.end(), kVoigtNames.begin(), kVoigtNames.end());
    return header;
}

std::string elastic_html(const ElasticCommandOptions& options, const std::vector<ElasticFrame>& frames) {
    std::string body;
    for (const ElasticFrame& frame : frames) {
        const ElasticConstants& constants = frame.constants;
        body += concat("<h2>frame ", frame.index, ": ", constants.crystal.atom_count(), " atoms</h2>\n");
        if (!constants.problem.empty()) body += report::verdict_paragraph(false, constants.problem);
        body += elastic_table({}, quality_lines(constants));
        if (!constants.has_stiffness) continue;
        body += elastic_table(stiffness_header(), stiffness_lines(constants));
        body += elastic_table({"", "Voigt", "Reuss", "Hill"}, moduli_lines(constants));
        body += "<div class=\"plots\">" + (constants.compliance ? report::svg(young_plot(frame)) : "") +
                report::svg(stress_plot(frame)) + "</div>";
    }
    return report::html_page(elastic_title(options), body);
}

std::string elastic_markdown_table(const std::vector<std::string>& header, const std::vector<ElasticLine>& lines) {
    if (lines.empty()) return "";
    std::string text = "|", rule = "|---|";
    for (const std::string& name : header) text += " " + name + " |";
    for (size_t i = 1; i < header.size(); ++i) rule += "--:|";
    text += "\n" + rule + "\n";
    for (const ElasticLine& line : lines) {
        text += "| " + line.name + " |";
        for (size_t i = 0; i + 1 < header.size(); ++i)
            text += " " + (i < line.values.size() ? line.values[i] : "") + " |";
        text += "\n";
    }
    return text + "\n";
}

std::string elastic_markdown(const ElasticCommandOptions& options, const std::vector<ElasticFrame>& frames) {
    std::string text = "# " + elastic_title(options) + "\n";
    for (const ElasticFrame& frame : frames) {
        const ElasticConstants& constants = frame.constants;
        text += concat("\n## frame ", frame.index, ": ", constants.crystal.atom_count(), " atoms\n\n");
        if (!constants.problem.empty()) text += constants.problem + "\n\n";
        for (const ElasticLine& line : quality_lines(constants)) {
            text += "- " + line.name + ":";
            for (const std::string& value : line.values) text += " " + value;
            text += "\n";
        }
        text += "\n";
        if (constants.has_stiffness) text += elastic_markdown_table(stiffness_header(), stiffness_lines(constants));
        text += elastic_markdown_table({"", "Voigt", "Reuss", "Hill"}, moduli_lines(constants));
    }
    return text;
}

int run_elastic(ElasticCommandOptions options) {
    options.elastic.relaxes_cell = !options.no_relax;
    options.elastic.relaxes_positions = !options.clamped;
    check_outputs(options.report, "report.html", options.json);
    const std::vector<Frame> input = read_extxyz(options.input);
    if (input.empty()) fail(Status::format, options.input, ": no frame in the file");
    Sessions sessions(load_model(options.model.model), options.model.session_options());
    PlanWarning warning(options.model.model, options.model.session.exact_radial);

    std::vector<ElasticFrame> frames;
    for (const Frame& frame : input) {
        const auto index = static_cast<int64_t>(frames.size());
        const std::string place = concat(options.input, ": frame ", index);
        try {
            Session& session = sessions.for_frame(frame);
            warning.look_at(session, frame.view(), place);
            ProgressLine line(options.input);
            line.show(concat("frame ", index), static_cast<double>(index) / static_cast<double>(input.size()));
            frames.push_back({index, compute_elastic_constants(session, moving_atoms(frame, ""), options.elastic)});
        } catch (const Error& error) {
            if (error.status() == Status::argument) throw;  // no fault of this frame
            throw Error(error.status(), concat(place, ": ", error.what()));
        }
        if (options.json != "-") print_elastic_frame(frames.back());
        if (const std::string& problem = frames.back().constants.problem; !problem.empty())
            std::cerr << "mlff: " << place << ": " << problem << "\n";
    }
    const std::string json = elastic_json(options, frames, sessions.for_frame(input.front()))
                                 .dump(1, ' ', false, Json::error_handler_t::replace) +
                             "\n";
    if (!options.json.empty()) write_text(options.json, json);
    if (!options.report.empty()) {
        write_text(options.report + "/report.json", json);
        write_text(options.report + "/report.md", elastic_markdown(options, frames));
        write_text(options.report + "/report.html", elastic_html(options, frames));
    }
    const auto is_good = [](const ElasticFrame& frame) { return frame.constants.problem.empty(); };
    return std::all_of(frames.begin(), frames.end(), is_good) ? kGood : kCheckFailed;
}

}  // namespace

void add_elastic(CLI::App& app, Work& work) {
    auto options = std::make_shared<ElasticCommandOptions>();
    options->model.precision = "fp64";
    CLI::App* command = app.add_subcommand("elastic", "compute elastic constants and moduli of crystals");
    command->add_option("FILE", options->input, "crystals in extended XYZ; '-' = standard input")->required();
    options->model.add_to(*command);
    command
        ->add_option("--strain", options->elastic.strain,
                     "strains are this, twice this, and the same with the other sign")
        ->capture_default_str()
        ->option_text("STRAIN");
    command->add_flag("--no-relax", options->no_relax,
                      "keep the cell as it is; refused if its stress is above 0.5 GPa");
    command->add_flag("--clamped", options->clamped, "atoms follow the strain and do not relax");
    command->add_option("--fmax", options->elastic.largest_force, "converged when no force exceeds this, in eV/A")
        ->capture_default_str()
        ->option_text("FORCE");
    command
        ->add_option("--smax", options->elastic.largest_stress,
                     "the cell is converged when no stress exceeds this, in eV/A^3")
        ->capture_default_str()
        ->option_text("STRESS");
    command->add_option("--steps", options->elastic.step_limit, "maximum number of steps of a relaxation")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("N");
    add_report_option(*command, options->report);
    add_json_option(*command, options->json);
    command->footer(
        R"(For every frame of FILE, relaxes cell and positions, strains the cell by each of the components
xx yy zz yz xz xy, relaxes the positions again, and takes the elastic constants from the stresses.
Shear strains are those of engineers: twice the entry of the strain matrix. Axes are those of FILE.
Prints the stiffness, how much it lacks symmetry, how much it changed when strains were
extrapolated to zero, its eigenvalues, and the moduli of a polycrystal. All strained cells of a
frame run as one batch. A crystal is mechanically stable if all eigenvalues are positive; if it is
not, or does not relax, the exit code is 1. The precision is fp64 unless --precision says otherwise.

Examples:
  # A crystal; the report has plots
  mlff elastic silicon.xyz --model X.model --report report
  # Only the part of the lattice, without the relaxation of the atoms in the cell
  mlff elastic silicon.xyz --model X.model --clamped --json elastic.json)");
    command->callback([options, &work] { work = [options] { return run_elastic(*options); }; });
}

}  // namespace mlff::app
