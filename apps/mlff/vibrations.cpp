// SPDX-License-Identifier: MIT
// mlff vibrations: normal modes of structures at rest, and what follows from them at a temperature.
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <numbers>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/elements.h"
#include "core/error.h"
#include "dynamics/relaxation_batch.h"
#include "dynamics/units.h"
#include "formats/extxyz.h"
#include "moving_atoms.h"
#include "properties/normal_modes.h"
#include "properties/thermochemistry.h"
#include "properties/units.h"
#include "second_derivatives.h"
#include "sessions.h"
#include "symmetry/point_group.h"
#include "tools/report/html_page.h"
#include "tools/report/svg_plot.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;

struct VibrationsOptions {
    std::string input, json, report, modes;
    SecondDerivativeOptions derivatives;
    bool is_relaxed_already = false;
    double largest_force = 1e-4;
    int64_t step_limit = 2000;
    double temperature = 298.15, pressure = 1;  // K, bar
};

// What is found for one frame.
struct Vibrations {
    int64_t index = 0;
    std::string formula;
    bool is_periodic = false, is_converged = true;
    double energy = 0, largest_force = 0;
    std::vector<double> positions;
    Hessian hessian;
    NormalModes modes;
    PointGroup group;  // of a molecule
    VibrationalEnergy vibrations;
    Thermochemistry gas;  // of a molecule
};

constexpr double kMilli = 1e3;
constexpr double kRotorTolerance = 0.02;  // angstrom, for the symmetry number: structures are relaxed, not exact

std::string formula_of(const std::vector<int32_t>& atomic_numbers) {
    std::map<std::string, int> counts;
    for (const int32_t number : atomic_numbers) ++counts[std::string(element_symbol(number))];
    std::string text;
    const auto add = [&](const std::string& symbol) {
        const auto found = counts.find(symbol);
        if (found == counts.end()) return;
        text += symbol + (found->second > 1 ? std::to_string(found->second) : "");
        counts.erase(found);
    };
    if (counts.count("C")) add("C"), add("H");
    while (!counts.empty()) add(std::string(counts.begin()->first));
    return text;
}

// Of imaginary modes "123.45i".
std::string frequency_text(double frequency) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(2) << std::abs(frequency) << (frequency < 0 ? "i" : "");
    return text.str();
}

void print(const Vibrations& found, const VibrationsOptions& options) {
    const NormalModes& modes = found.modes;
    std::cout << "frame " << found.index << ": " << found.formula << ", "
              << (options.is_relaxed_already ? "not relaxed"
                  : found.is_converged       ? "relaxed"
                                             : "not converged")
              << ", energy " << std::fixed << std::setprecision(6) << found.energy << " eV, largest force "
              << std::scientific << std::setprecision(1) << found.largest_force << " eV/A\n";
    std::cout << std::fixed << std::setw(6) << "mode" << std::setw(14) << "1/cm" << std::setw(12) << "meV"
              << std::setw(18) << "reduced mass/u"
              << "\n";
    for (size_t mode = 0; mode < modes.frequencies.size(); ++mode)
        std::cout << std::setw(6) << mode << std::setw(14) << frequency_text(modes.frequencies[mode]) << std::setw(12)
                  << std::setprecision(3) << kMilli * modes.frequencies[mode] * kElectronvoltPerWavenumber
                  << std::setw(18) << modes.reduced_masses[mode] << "\n";
    std::cout << "imaginary modes: " << modes.imaginary_count() << "; frequencies of rigid motions (0 in theory):";
    for (const double frequency : modes.rigid_frequencies) std::cout << " " << frequency_text(frequency);
    std::cout << "\nzero-point energy " << std::setprecision(6) << modes.zero_point_energy() << " eV\n";
    if (found.is_periodic) {
        std::cout << "at " << std::setprecision(2) << options.temperature << " K, vibrations only: energy "
                  << std::setprecision(6) << found.vibrations.internal_energy << " eV, entropy " << std::setprecision(4)
                  << kMilli * found.vibrations.entropy << " meV/K, free energy " << std::setprecision(6)
                  << found.vibrations.internal_energy - options.temperature * found.vibrations.entropy << " eV\n\n";
        return;
    }
    const Thermochemistry& gas = found.gas;
    std::cout << "ideal gas at " << std::setprecision(2) << options.temperature << " K and " << std::setprecision(4)
              << options.pressure << " bar, " << (found.group.is_linear ? "linear, " : "") << "symmetry number "
              << found.group.symmetry_number << ":\n"
              << "  enthalpy      H - E = " << std::setprecision(6) << std::setw(10) << gas.enthalpy << " eV  "
              << std::setprecision(3) << std::setw(9) << gas.enthalpy * kKilojoulePerMole << " kJ/mol\n"
              << "  entropy           S = " << std::setprecision(6) << std::setw(10) << kMilli * gas.entropy << " meV/K"
              << std::setprecision(3) << std::setw(8) << gas.entropy * kKilojoulePerMole * kMilli << " J/(mol K)\n"
              << "  free energy   G - E = " << std::setprecision(6) << std::setw(10) << gas.gibbs_energy << " eV  "
              << std::setprecision(3) << std::setw(9) << gas.gibbs_energy * kKilojoulePerMole << " kJ/mol\n\n"
              << std::flush;
}

Json json_of(const Vibrations& found, const VibrationsOptions& options) {
    const size_t width = found.positions.size();
    const auto rows = [](const std::vector<double>& values, size_t size) {
        Json result = Json::array();
        for (auto at = values.begin(); at != values.end(); at += static_cast<std::ptrdiff_t>(size))
            result.push_back(std::vector<double>(at, at + static_cast<std::ptrdiff_t>(size)));
        return result;
    };
    Json modes = Json::array();
    for (size_t mode = 0; mode < found.modes.frequencies.size(); ++mode) {
        const auto begin = found.modes.displacements.begin() + static_cast<std::ptrdiff_t>(mode * width);
        modes.push_back(
            {{"frequency", found.modes.frequencies[mode]},
             {"reduced_mass", found.modes.reduced_masses[mode]},
             {"displacements", rows(std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(width)), 3)}});
    }
    Json json = {{"formula", found.formula},
                 {"converged", found.is_converged},
                 {"energy", found.energy},
                 {"largest_force", found.largest_force},
                 {"positions", rows(found.positions, 3)},
                 {"modes", modes},
                 {"imaginary_modes", found.modes.imaginary_count()},
                 {"rigid_frequencies", found.modes.rigid_frequencies},
                 {"zero_point_energy", found.modes.zero_point_energy()},
                 {"temperature", options.temperature},
                 {"vibrational_energy", found.vibrations.internal_energy},
                 {"vibrational_entropy", found.vibrations.entropy},
                 {"vibrational_heat_capacity", found.vibrations.heat_capacity},
                 {"step_error", found.hessian.step_error}};
    if (!found.is_periodic)
        json["ideal_gas"] = {{"pressure", options.pressure},
                             {"linear", found.group.is_linear},
                             {"symmetry_number", found.group.symmetry_number},
                             {"enthalpy", found.gas.enthalpy},
                             {"internal_energy", found.gas.internal_energy},
                             {"entropy", found.gas.entropy},
                             {"translational_entropy", found.gas.translational_entropy},
                             {"rotational_entropy", found.gas.rotational_entropy},
                             {"electronic_entropy", found.gas.electronic_entropy},
                             {"heat_capacity", found.gas.heat_capacity},
                             {"gibbs_energy", found.gas.gibbs_energy}};
    return json;
}

// A file for each mode: one period of its motion, for viewers.
void write_modes(const Vibrations& found, Frame frame, const std::string& folder) {
    constexpr int kFrames = 24;
    constexpr double kAmplitude = 0.3;  // angstrom: of the whole displacement
    const size_t width = found.positions.size();
    frame.info.clear();
    frame.columns.clear();
    for (size_t mode = 0; mode < found.modes.frequencies.size(); ++mode) {
        std::ostringstream text;
        const auto begin = found.modes.displacements.begin() + static_cast<std::ptrdiff_t>(mode * width);
        const std::vector<double> motion(begin, begin + static_cast<std::ptrdiff_t>(width));
        for (int k = 0; k < kFrames; ++k) {
            const double phase = std::sin(2 * std::numbers::pi * k / kFrames);
            for (size_t i = 0; i < width; ++i) frame.positions[i] = found.positions[i] + kAmplitude * phase * motion[i];
            frame.set_info("frequency", found.modes.frequencies[mode]);
            frame.set_column("mode", 3, motion);
            write_extxyz(text, frame);
        }
        std::ostringstream path;
        path << folder << "/frame" << found.index << "_mode" << std::setfill('0') << std::setw(3) << mode << ".xyz";
        write_text(path.str(), text.str());
    }
}

std::string report_html(const std::vector<Vibrations>& all, const VibrationsOptions& options) {
    std::string body;
    for (const Vibrations& found : all) {
        report::Plot plot;
        plot.title = concat(found.formula, ": normal modes");
        plot.x_label = "frequency, 1/cm (imaginary ones below 0)";
        plot.y_label = "reduced mass, u";
        std::vector<std::vector<report::Cell>> rows;
        const NormalModes& modes = found.modes;
        constexpr double kBarWidth = 12;  // 1/cm
        for (size_t mode = 0; mode < modes.frequencies.size(); ++mode) {
            const double frequency = modes.frequencies[mode];
            plot.bars.push_back({frequency - kBarWidth / 2, frequency + kBarWidth / 2, modes.reduced_masses[mode]});
            std::ostringstream mass;
            mass << std::fixed << std::setprecision(3) << modes.reduced_masses[mode];
            rows.push_back(
                {{std::to_string(mode), "number"}, {frequency_text(frequency), "number"}, {mass.str(), "number"}});
        }
        plot.lowest_y = 0.0;
        std::ostringstream sentence;
        sentence << std::fixed << std::setprecision(4) << "Energy " << found.energy << " eV, zero-point energy "
                 << modes.zero_point_energy() << " eV, imaginary modes: " << modes.imaginary_count() << ".";
        if (!found.is_periodic)
            sentence << " As an ideal gas at " << std::setprecision(2) << options.temperature << " K and "
                     << options.pressure << " bar: H - E = " << std::setprecision(4) << found.gas.enthalpy
                     << " eV, S = " << kMilli * found.gas.entropy << " meV/K, G - E = " << found.gas.gibbs_energy
                     << " eV.";
        body += "<section><h2>Frame " + std::to_string(found.index) + ": " + report::html_escaped(found.formula) +
                "</h2>\n<p>" + report::html_escaped(sentence.str()) + "</p>\n<div class=\"plots\">\n" +
                report::svg(plot) + "</div>\n" +
                report::html_table({"mode", "frequency, 1/cm", "reduced mass, u"}, rows) + "</section>\n";
    }
    return report::html_page("Vibrations with " + options.derivatives.model.model, body);
}

// Relaxes, unless that is not wanted, and tells what forces are left. False: stopped by a signal.
bool bring_to_rest(Session& session, Particles& particles, Vibrations& found, const VibrationsOptions& options,
                   const HessianRun& run) {
    RelaxationOptions relaxation;
    relaxation.largest_force = options.largest_force;
    relaxation.step_limit = options.is_relaxed_already ? 0 : options.step_limit;
    SessionBatch forces(session);
    RelaxationBatch batch(forces);
    batch.add(0, Relaxation(particles, relaxation));
    while (!batch.is_empty()) {
        if (run.is_stopped()) return false;
        for (const RelaxationBatch::Member& member : batch.step()) {
            if (member.error) throw Error(*member.error);
            particles.positions = found.positions = member.relaxation.particles().positions;
            found.energy = member.relaxation.energy();
            found.largest_force = member.relaxation.largest_force();
            found.is_converged = member.relaxation.is_converged();
        }
    }
    return true;
}

void analyse(const Particles& particles, Vibrations& found, const VibrationsOptions& options) {
    const SystemView system = particles.view();
    found.is_periodic = system.is_periodic();
    if (!found.is_periodic) found.group = find_point_group(system, kRotorTolerance, particles.masses);
    found.modes = normal_modes(found.hessian.values, particles.masses, particles.positions,
                               free_rotation_axes(system, found.group.is_linear));
    found.vibrations = vibrational_energy(found.modes.frequencies, options.temperature);
    if (found.is_periodic) return;
    found.gas = thermochemistry_of({.frequencies = found.modes.frequencies,
                                    .masses = particles.masses,
                                    .positions = particles.positions,
                                    .is_linear = found.group.is_linear,
                                    .symmetry_number = found.group.symmetry_number,
                                    .spin_multiplicity = system.spin_multiplicity},
                                   options.temperature, options.pressure);
}

void check(const VibrationsOptions& options) {
    if (!(options.temperature > 0 && options.temperature < 1e6))
        fail(Status::argument, "--temperature ", options.temperature, ": expected above 0 K");
    if (!(options.pressure > 0 && options.pressure < 1e9))
        fail(Status::argument, "--pressure ", options.pressure, ": expected above 0 bar");
    check_outputs(options.report, "report.html", options.json);
    if (options.modes.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(options.modes, error);
    if (error) fail(Status::file, "--modes ", options.modes, ": cannot make the folder (", error.message(), ")");
}

int run_vibrations(const VibrationsOptions& options) {
    check(options);
    Sessions sessions(load_model(options.derivatives.model.model), options.derivatives.session_options());
    HessianRun run;
    ExtxyzReader reader(options.input);
    std::vector<Vibrations> all;
    Frame frame;
    int64_t failed = 0;
    while (reader.next(frame)) {
        Vibrations found;
        found.index = reader.frames_read() - 1;
        const std::string name = concat(options.input, ": frame ", found.index);
        try {
            if (frame.atom_count() == 0) fail(Status::format, "there are no atoms");
            Session& session = sessions.for_frame(frame);
            Particles particles = moving_atoms(frame, "");
            if (particles.has_fixed_atoms())
                fail(Status::unsupported,
                     "vibrations beside fixed atoms are not there yet; remove the column move_mask");
            found.formula = formula_of(frame.atomic_numbers);
            if (!(particles.environment.spin_multiplicity >= 1))
                fail(Status::system, "the spin multiplicity is ", particles.environment.spin_multiplicity,
                     ", expected 1 or more for thermochemistry");
            if (!bring_to_rest(session, particles, found, options, run)) return run.exit_code(options.input);
            auto hessian = run.compute(session, particles.view(), options.derivatives.hessian, name);
            if (!hessian) return run.exit_code(options.input);
            found.hessian = std::move(*hessian);
            analyse(particles, found, options);
        } catch (const Error& error) {
            throw Error(error.status(), concat(name, ": ", error.what()));
        }
        if (options.json != "-") print(found, options);
        if (!found.is_converged) {
            ++failed;
            std::cerr << "mlff: " << name << ": the largest force is " << found.largest_force
                      << " eV/A; frequencies are those of a structure at rest only with " << options.largest_force
                      << " or less\n";
        }
        if (!options.modes.empty()) write_modes(found, frame, options.modes);
        all.push_back(std::move(found));
    }
    if (all.empty()) fail(Status::format, options.input, ": no frame in the file");
    Json frames = Json::array();
    for (const Vibrations& found : all) frames.push_back(json_of(found, options));
    const std::string json = Json{{"model", options.derivatives.model.model}, {"frames", frames}}.dump() + "\n";
    if (!options.json.empty()) write_text(options.json, json);
    if (!options.report.empty()) {
        write_text(options.report + "/report.json", json);
        write_text(options.report + "/report.html", report_html(all, options));
    }
    return failed == 0 ? kGood : kCheckFailed;
}

}  // namespace

void add_vibrations(CLI::App& app, Work& work) {
    auto options = std::make_shared<VibrationsOptions>();
    CLI::App* command = app.add_subcommand("vibrations", "compute normal modes and thermochemistry");
    command->add_option("FILE", options->input, "structures in extended XYZ; '-' = standard input")->required();
    options->derivatives.add_to(*command);
    command->add_flag("--no-relax", options->is_relaxed_already, "take the structures as they are");
    command->add_option("--fmax", options->largest_force, "converged when no force exceeds this, in eV/A")
        ->capture_default_str()
        ->check(CLI::PositiveNumber)
        ->option_text("FORCE");
    command->add_option("--steps", options->step_limit, "maximum number of steps of a relaxation")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber)
        ->option_text("N");
    command->add_option("--temperature", options->temperature, "for thermochemistry, in K")
        ->capture_default_str()
        ->option_text("T");
    command->add_option("--pressure", options->pressure, "of the ideal gas, in bar")
        ->capture_default_str()
        ->option_text("BAR");
    command->add_option("--modes", options->modes, "write each mode as a trajectory, extended XYZ, into FOLDER")
        ->option_text("FOLDER");
    add_json_option(*command, options->json);
    add_report_option(*command, options->report);
    command->footer(
        R"(Relaxes each structure, computes its Hessian (see mlff hessian) and prints frequencies in 1/cm;
imaginary ones end with i. Motions of the whole structure are projected out; their frequencies
before that show how exact the forces are. Masses are the column masses, or those of the elements.
For molecules, thermochemistry of an ideal gas of rigid rotors with harmonic vibrations follows. The
symmetry number is that of the relaxed structure; total_spin in the comment line is the spin
multiplicity. For periodic structures, modes are those of the cell at the Gamma point.
The exit code is 1 if forces are larger than --fmax.

Examples:
  mlff vibrations water.xyz
  # At 500 K, with a MACE model; modes to animate
  mlff vibrations ethanol.xyz --model X.model --temperature 500 --modes modes)");
    command->callback([options, &work] { work = [options] { return run_vibrations(*options); }; });
}

}  // namespace mlff::app
