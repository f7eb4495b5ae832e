// SPDX-License-Identifier: MIT
// mlff eos: the energy of crystals against their volume, and the equation of state that fits it.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/error.h"
#include "dynamics/units.h"
#include "formats/extxyz.h"
#include "moving_atoms.h"
#include "plan_warning.h"
#include "progress_line.h"
#include "properties/equation_of_state.h"
#include "sessions.h"
#include "tools/report/html_page.h"
#include "tools/report/svg_plot.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;

struct EosOptions {
    std::string input, form = "birch-murnaghan", json, report;
    ModelOptions model;
    EnergyCurveOptions curve;
    double range_percent = 6;
    bool no_relax = false;
};

struct EosFrame {
    int64_t index = 0;
    size_t atom_count = 0;
    EnergyCurve curve;
};

EnergyForm form_of(const EosOptions& options) {
    return options.form == "vinet" ? EnergyForm::vinet : EnergyForm::birch_murnaghan;
}

std::string form_title(EnergyForm form) { return form == EnergyForm::vinet ? "Vinet" : "Birch and Murnaghan"; }

std::string eos_number(double value, int digits) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(digits) << value;
    return text.str();
}

constexpr const char* kEosColumns[] = {"frame", "atoms", "E0/eV", "V0/A^3", "B0/GPa", "B0'", "rms/meV"};

// In the order of kEosColumns; "-" without a fit.
std::vector<std::string> eos_row(const EosFrame& frame) {
    std::vector<std::string> row = {std::to_string(frame.index), std::to_string(frame.atom_count)};
    if (!frame.curve.fit) {
        row.resize(std::size(kEosColumns), "-");
        return row;
    }
    const EquationOfState& equation = frame.curve.fit->equation;
    row.push_back(eos_number(equation.energy, 6));
    row.push_back(eos_number(equation.volume, 4));
    row.push_back(eos_number(equation.bulk_modulus / kGigapascal, 3));
    row.push_back(eos_number(equation.bulk_modulus_slope, 3));
    row.push_back(eos_number(1e3 * frame.curve.fit->rms_residual, 4));
    return row;
}

void print_eos_row(const std::vector<std::string>& row) {
    constexpr int kWidths[] = {6, 8, 18, 14, 12, 10, 12};
    for (size_t i = 0; i < row.size(); ++i) std::cout << std::setw(kWidths[i]) << row[i];
    std::cout << "\n" << std::flush;
}

Json eos_json(const EosOptions& options, const std::vector<EosFrame>& frames, const Session& session) {
    Json json = {{"model", options.model.model},
                 {"device", session.device_name()},
                 {"precision", precision_name(session.precision())},
                 {"form", options.form},
                 {"relaxed", options.no_relax              ? "nothing"
                             : options.curve.relaxes_shape ? "positions and shape"
                                                           : "positions"},
                 {"units", {{"energy", "eV"}, {"volume", "A^3"}, {"bulk_modulus", "GPa"}, {"force", "eV/A"}}},
                 {"frames", Json::array()}};
    for (const EosFrame& frame : frames) {
        const EnergyCurve& curve = frame.curve;
        Json fit;
        if (curve.fit)
            fit = {{"energy", curve.fit->equation.energy},
                   {"volume", curve.fit->equation.volume},
                   {"bulk_modulus", curve.fit->equation.bulk_modulus / kGigapascal},
                   {"bulk_modulus_derivative", curve.fit->equation.bulk_modulus_slope},
                   {"rms_residual", curve.fit->rms_residual}};
        json["frames"].push_back({{"atoms", frame.atom_count},
                                  {"volumes", curve.volumes},
                                  {"energies", curve.energies},
                                  {"largest_forces", curve.largest_forces},
                                  {"moves", curve.moves},
                                  {"fit", fit},
                                  {"problem", curve.problem.empty() ? Json() : Json(curve.problem)}});
    }
    return json;
}

// Points and, if there is one, the curve through them.
report::Plot eos_plot(const EosFrame& frame, EnergyForm form) {
    const EnergyCurve& curve = frame.curve;
    const double atoms = static_cast<double>(frame.atom_count),
                 lowest = curve.fit ? curve.fit->equation.energy
                                    : *std::min_element(curve.energies.begin(), curve.energies.end());
    const auto as_shown = [&](double energy) { return 1e3 * (energy - lowest) / atoms; };
    report::Plot plot;
    plot.title = concat("frame ", frame.index, ": energy against volume");
    plot.x_label = "volume, A^3 per atom";
    plot.y_label = "energy above the minimum, meV per atom";
    plot.style = report::Plot::Style::points;
    report::Curve points{"computed", {}, {}};
    for (size_t i = 0; i < curve.volumes.size(); ++i) {
        points.x.push_back(curve.volumes[i] / atoms);
        points.y.push_back(as_shown(curve.energies[i]));
    }
    plot.curves.push_back(points);
    if (!curve.fit) return plot;
    report::Curve fitted{"fit", {}, {}};
    constexpr int kPieces = 100;
    for (int i = 0; i <= kPieces; ++i) {
        const double volume =
            curve.volumes.front() + (curve.volumes.back() - curve.volumes.front()) * i / static_cast<double>(kPieces);
        fitted.x.push_back(volume / atoms);
        fitted.y.push_back(as_shown(energy_at(form, curve.fit->equation, volume)));
    }
    plot.overlays.push_back(fitted);
    plot.overlay_name = "dots: computed; line: " + form_title(form);
    plot.marks.push_back({curve.fit->equation.volume / atoms, "V0"});
    return plot;
}

std::string eos_title(const EosOptions& options) {
    return concat("Equation of state: ", options.input, ", ", options.model.model);
}

std::string eos_html(const EosOptions& options, const std::vector<EosFrame>& frames) {
    std::vector<std::vector<report::Cell>> rows;
    std::string problems, plots;
    for (const EosFrame& frame : frames) {
        std::vector<report::Cell> row;
        for (const std::string& text : eos_row(frame)) row.push_back({text, "number"});
        rows.push_back(row);
        plots += report::svg(eos_plot(frame, form_of(options)));
        if (!frame.curve.problem.empty())
            problems += report::verdict_paragraph(false, concat("frame ", frame.index, ": ", frame.curve.problem));
    }
    return report::html_page(eos_title(options),
                             problems + report::html_table({std::begin(kEosColumns), std::end(kEosColumns)}, rows) +
                                 "<div class=\"plots\">" + plots + "</div>");
}

std::string eos_markdown(const EosOptions& options, const std::vector<EosFrame>& frames) {
    std::string header = "|", line = "|", text;
    for (const char* name : kEosColumns) header += concat(" ", name, " |"), line += "--:|";
    for (const EosFrame& frame : frames) {
        text += "|";
        for (const std::string& cell : eos_row(frame)) text += " " + cell + " |";
        text += "\n";
    }
    for (const EosFrame& frame : frames)
        if (!frame.curve.problem.empty()) text += concat("\nframe ", frame.index, ": ", frame.curve.problem, "\n");
    return "# " + eos_title(options) + "\n\n" + header + "\n" + line + "\n" + text;
}

int run_eos(EosOptions options) {
    options.curve.range = options.range_percent / 100;
    options.curve.relaxes_positions = !options.no_relax;
    check_outputs(options.report, "report.html", options.json);
    const std::vector<Frame> input = read_extxyz(options.input);
    if (input.empty()) fail(Status::format, options.input, ": no frame in the file");
    Sessions sessions(load_model(options.model.model), options.model.session_options());
    PlanWarning warning(options.model.model, options.model.session.exact_radial);
    const bool prints_text = options.json != "-";

    if (prints_text) print_eos_row({std::begin(kEosColumns), std::end(kEosColumns)});
    std::vector<EosFrame> frames;
    for (const Frame& frame : input) {
        const auto index = static_cast<int64_t>(frames.size());
        const std::string place = concat(options.input, ": frame ", index);
        try {
            Session& session = sessions.for_frame(frame);
            warning.look_at(session, frame.view(), place);
            ProgressLine line(options.input);
            line.show(concat("frame ", index), static_cast<double>(index) / static_cast<double>(input.size()));
            frames.push_back({index, static_cast<size_t>(frame.atom_count()),
                              compute_energy_curve(session, moving_atoms(frame, ""), form_of(options), options.curve)});
        } catch (const Error& error) {
            if (error.status() == Status::argument) throw;  // no fault of this frame
            throw Error(error.status(), concat(place, ": ", error.what()));
        }
        if (prints_text) print_eos_row(eos_row(frames.back()));
        if (!frames.back().curve.problem.empty())
            std::cerr << "mlff: " << place << ": " << frames.back().curve.problem << "\n";
    }
    const std::string json = eos_json(options, frames, sessions.for_frame(input.front()))
                                 .dump(1, ' ', false, Json::error_handler_t::replace) +
                             "\n";
    if (!options.json.empty()) write_text(options.json, json);
    if (!options.report.empty()) {
        write_text(options.report + "/report.json", json);
        write_text(options.report + "/report.md", eos_markdown(options, frames));
        write_text(options.report + "/report.html", eos_html(options, frames));
    }
    const auto has_fit = [](const EosFrame& frame) { return frame.curve.fit.has_value(); };
    return std::all_of(frames.begin(), frames.end(), has_fit) ? kGood : kCheckFailed;
}

}  // namespace

void add_eos(CLI::App& app, Work& work) {
    auto options = std::make_shared<EosOptions>();
    options->model.precision = "fp64";
    CLI::App* command = app.add_subcommand("eos", "compute the equation of state of crystals");
    command->add_option("FILE", options->input, "crystals in extended XYZ; '-' = standard input")->required();
    options->model.add_to(*command);
    command->add_option("--points", options->curve.volume_count, "number of volumes, at least 5")
        ->capture_default_str()
        ->option_text("N");
    command
        ->add_option("--range", options->range_percent,
                     "volumes go from this many percent below that of the crystal to as many above")
        ->capture_default_str()
        ->option_text("PERCENT");
    command->add_option("--form", options->form, "birch-murnaghan (third order) or vinet")
        ->capture_default_str()
        ->check(CLI::IsMember({"birch-murnaghan", "vinet"}))
        ->option_text("NAME");
    auto* shape = command->add_flag("--shape", options->curve.relaxes_shape,
                                    "relax the shape of the cell too at each volume, for crystals that are not cubic");
    command->add_flag("--no-relax", options->no_relax, "leave the positions as they are, scaled with the cell")
        ->excludes(shape);
    command->add_option("--fmax", options->curve.largest_force, "converged when no force exceeds this, in eV/A")
        ->capture_default_str()
        ->option_text("FORCE");
    command->add_option("--steps", options->curve.step_limit, "maximum number of steps of a relaxation")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("N");
    add_report_option(*command, options->report);
    add_json_option(*command, options->json);
    command->footer(
        R"(For every frame of FILE, computes the energy at volumes around that of the frame, relaxes the
positions at each of them, and fits an equation of state: the energy E0 and the volume V0 at the
minimum, the bulk modulus B0 and its derivative by the pressure B0', and the residual of the fit
(root of the mean square). E0 and V0 are of the whole cell. All volumes of a frame run as one batch.
There is no fit, and the exit code is 1, if the minimum is not inside the range, if the energy is
not a convex function of the volume, or if positions do not converge. Then relax the cell first
(mlff relax --cell), or change --range. The precision is fp64 unless --precision says otherwise.

Examples:
  # A cubic crystal; the report has a plot
  mlff eos silicon.xyz --model X.model --report report
  # A hexagonal crystal, whose axes change with the volume by different parts
  mlff eos quartz.xyz --model X.model --shape --points 15 --form vinet --json eos.json)");
    command->callback([options, &work] { work = [options] { return run_eos(*options); }; });
}

}  // namespace mlff::app
