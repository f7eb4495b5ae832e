// SPDX-License-Identifier: MIT
// mlff eval: energies, forces and stresses of the frames of a file.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/elements.h"
#include "core/error.h"
#include "core/output_file.h"
#include "formats/extxyz.h"
#include "frame_result.h"
#include "plan_warning.h"
#include "sessions.h"
#include "trust/formulas.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;

struct EvalOptions {
    std::string input;
    ModelOptions model;
    std::string json;    // "" = none, "-" = standard output
    std::string output;  // extended XYZ
    bool descriptors = false;
    bool forces = false;  // print those of every atom
};

constexpr size_t kMostForcesPrinted = 20;  // atoms of a file, unless --forces asks for all

// [atom][...] as nested arrays
Json atom_rows(const std::vector<double>& values, size_t atom_count) {
    Json rows = Json::array();
    const auto width = static_cast<std::ptrdiff_t>(atom_count > 0 ? values.size() / atom_count : 0);
    for (auto at = values.begin(); at != values.end(); at += width) rows.push_back(std::vector<double>(at, at + width));
    return rows;
}

double largest(const std::vector<double>& numbers) {
    return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

// Atoms whose forces should not be trusted.
std::vector<size_t> atoms_outside(const FrameResult& result) {
    std::vector<size_t> atoms;
    for (size_t atom = 0; atom < result.novelties.size(); ++atom)
        if (trust::is_outside(result.alarm_error, result.expected_errors[atom], result.novelties[atom]))
            atoms.push_back(atom);
    return atoms;
}

Json frame_json(const FrameResult& result) {
    const size_t atom_count = result.atom_count;
    Json json = {{"atoms", atom_count},
                 {"energy", result.energy},
                 {"forces", atom_rows(result.forces, atom_count)},
                 {"stress", result.has_stress ? Json(result.stress) : Json()},
                 {"atom_energies", result.atom_energies.size() == atom_count ? Json(result.atom_energies) : Json()}};
    if (!result.descriptors.empty()) json["descriptors"] = atom_rows(result.descriptors, atom_count);
    if (result.has_spread)
        json["sigma"] = {{"energy_per_atom", result.sigma_energy_per_atom},
                         {"forces", result.sigma_forces},
                         {"max_force", result.sigma_max_force}};
    if (!result.expected_errors.empty())
        json["trust"] = {{"expected_errors", result.expected_errors},
                         {"novelties", result.novelties},
                         {"max_expected_error", largest(result.expected_errors)},
                         {"outside", atoms_outside(result)}};
    return json;
}

void put_results(Frame& frame, const FrameResult& result) {
    frame.set_info("energy", result.energy);
    const auto& s = result.stress;
    if (result.has_stress)
        frame.set_info("stress", std::vector<double>{s[0], s[5], s[4], s[5], s[1], s[3], s[4], s[3], s[2]});
    frame.set_column("forces", 3, result.forces);
    if (result.atom_energies.size() == result.atom_count) frame.set_column("energies", 1, result.atom_energies);
    if (!result.descriptors.empty())
        frame.set_column("descriptors", static_cast<int>(result.descriptors.size() / result.atom_count),
                         result.descriptors);
}

void put_spread(Frame& frame, const FrameResult& result) {
    if (!result.has_spread) return;
    frame.set_info("sigma_energy_per_atom", result.sigma_energy_per_atom);
    frame.set_info("sigma_max_force", result.sigma_max_force);
    frame.set_column("sigma_forces", 1, result.sigma_forces);
}

void put_trust(Frame& frame, const FrameResult& result) {
    if (result.expected_errors.empty()) return;
    frame.set_info("max_expected_error", largest(result.expected_errors));
    frame.set_column("expected_errors", 1, result.expected_errors);
    frame.set_column("novelties", 1, result.novelties);
}

// One sentence for a frame with atoms whose forces should not be trusted; "" for others.
std::string warning_about(const Frame& frame, const FrameResult& result) {
    constexpr size_t kMostNamed = 6;
    const std::vector<size_t> outside = atoms_outside(result);
    if (outside.empty()) return "";
    const bool is_new =
        std::any_of(outside.begin(), outside.end(), [&](size_t atom) { return result.novelties[atom] > 1; });
    std::string numbers, symbols;
    double least = result.expected_errors[outside.front()];
    for (size_t i = 0; i < outside.size(); ++i) {
        least = std::min(least, result.expected_errors[outside[i]]);
        if (i >= kMostNamed) continue;
        numbers += (i > 0 ? ", " : "") + std::to_string(outside[i]);
        symbols += (i > 0 ? " " : "") + std::string(element_symbol(frame.atomic_numbers[outside[i]]));
    }
    if (outside.size() > kMostNamed) numbers += concat(" and ", outside.size() - kMostNamed, " more");
    std::ostringstream error;
    error << std::setprecision(2) << least;
    return concat(outside.size() == 1 ? "atom " : "atoms ", numbers, " (", symbols, ")",
                  outside.size() == 1 ? " is" : " are", is_new ? " unlike anything" : " unlike most atoms",
                  " in training; expect force errors above ", error.str(), " eV/A");
}

double largest_force(const std::vector<double>& forces) {
    double largest = 0;
    for (size_t i = 0; i < forces.size(); i += 3)
        largest = std::max(largest, std::hypot(forces[i], forces[i + 1], forces[i + 2]));
    return largest;
}

class TablePrinter {
public:
    explicit TablePrinter(bool wants_forces) : wants_forces_(wants_forces) {}

    void header(const std::string& model, const Session& session) {
        std::cout << "model " << model << ", " << session.device_name() << ", " << precision_name(session.precision())
                  << "\n"
                  << std::setw(6) << "frame" << std::setw(10) << "atoms" << std::setw(20) << "energy/eV"
                  << std::setw(16) << "max|F|/(eV/A)" << std::setw(18) << "pressure/GPa";
        if (session.model().summary().member_count > 0) std::cout << std::setw(20) << "max sigma_F/(eV/A)";
        has_trust_column_ = session.model().trust_meter() != nullptr;
        if (has_trust_column_) std::cout << std::setw(24) << "expected error/(eV/A)";
        std::cout << "\n";
    }
    void row(int64_t index, const Frame& frame, const FrameResult& result) {
        constexpr double kGigapascal = 160.21766208;  // eV/angstrom^3
        std::cout << std::setw(6) << index << std::setw(10) << result.atom_count << std::fixed << std::setprecision(8)
                  << std::setw(20) << result.energy << std::setprecision(6) << std::setw(16)
                  << largest_force(result.forces) << std::setw(18);
        if (result.has_stress)
            std::cout << -(result.stress[0] + result.stress[1] + result.stress[2]) / 3 * kGigapascal;
        else
            std::cout << "-";
        if (result.has_spread) std::cout << std::setw(20) << result.sigma_max_force;
        if (!result.expected_errors.empty())
            std::cout << std::setw(24) << largest(result.expected_errors);
        else if (has_trust_column_)  // a frame with another head than that of the meter
            std::cout << std::setw(24) << "-";
        std::cout << "\n";
        atom_count_ += result.atom_count;
        if (shows_forces())
            frames_.push_back({index, frame.atomic_numbers, result.forces});
        else
            frames_.clear();
    }
    // After the rows, so that these stay one table.
    void forces() const {
        if (!shows_forces() || atom_count_ == 0) return;
        std::cout << "\n" << std::setw(6) << "frame" << std::setw(10) << "atom" << std::setw(4) << "";
        for (const char* name : {"Fx/(eV/A)", "Fy/(eV/A)", "Fz/(eV/A)"}) std::cout << std::setw(16) << name;
        std::cout << "\n";
        for (const FrameForces& frame : frames_)
            for (size_t atom = 0; atom < frame.atomic_numbers.size(); ++atom) {
                std::cout << std::setw(6) << frame.index << std::setw(10) << atom << std::setw(4)
                          << element_symbol(frame.atomic_numbers[atom]);
                for (size_t k = 0; k < 3; ++k) std::cout << std::setw(16) << shown_force(frame.forces[3 * atom + k]);
                std::cout << "\n";
            }
    }

private:
    struct FrameForces {
        int64_t index;
        std::vector<int32_t> atomic_numbers;
        std::vector<double> forces;
    };
    // With six digits, what is below half of the last one is 0 and not -0.
    static double shown_force(double force) { return std::abs(force) < 5e-7 ? 0.0 : force; }
    bool shows_forces() const { return wants_forces_ || atom_count_ <= kMostForcesPrinted; }

    bool wants_forces_, has_trust_column_ = false;
    size_t atom_count_ = 0;  // of all frames so far
    std::vector<FrameForces> frames_;
};

int run_eval(const EvalOptions& options) {
    const auto model = load_model(options.model.model);
    if (options.descriptors && model->summary().descriptor_count == 0)
        fail(Status::unsupported, options.model.model, ": --descriptors: this model has none");
    const SessionOptions session_options = options.model.session_options();
    Sessions sessions(model, session_options);
    ExtxyzReader reader(options.input);
    std::optional<OutputFile> output;
    if (!options.output.empty()) output.emplace(options.output);

    TablePrinter table(options.forces);
    PlanWarning plan_warning(options.model.model, session_options.exact_radial);
    std::string json;  // complete or not at all: a broken frame must not leave half a document
    Frame frame;
    while (reader.next(frame)) {
        const int64_t index = reader.frames_read() - 1;
        try {
            Session& session = sessions.for_frame(frame);
            plan_warning.look_at(session, frame.view(), concat(options.input, ": frame ", index));
            const FrameResult result = evaluate_frame(session, frame, {.descriptors = options.descriptors});
            if (index == 0) {
                if (options.json != "-") table.header(options.model.model, session);
                json = "{\"model\":" + Json(options.model.model).dump() +
                       ",\"device\":" + Json(session.device_name()).dump() + ",\"precision\":\"" +
                       std::string(precision_name(session.precision())) + "\",\"frames\":[";
            }
            if (options.json != "-") table.row(index, frame, result);
            if (const std::string warning = warning_about(frame, result); !warning.empty())
                std::cerr << "mlff: " << options.input << ": frame " << index << ": " << warning << "\n";
            if (!options.json.empty()) json += (index ? ",\n" : "\n") + frame_json(result).dump();
            if (output) {
                put_results(frame, result);
                put_spread(frame, result);
                put_trust(frame, result);
                std::ostringstream text;
                write_extxyz(text, frame);
                output->write(text.str().data(), text.str().size());
            }
        } catch (const Error& error) {
            throw Error(error.status(), concat(options.input, ": frame ", index, ": ", error.what()));
        }
    }
    if (reader.frames_read() == 0) fail(Status::format, options.input, ": no frame in the file");
    if (options.json != "-") table.forces();
    if (!options.json.empty()) write_text(options.json, json + "\n]}\n");
    if (output) output->commit();
    return kGood;
}

}  // namespace

void add_eval(CLI::App& app, Work& work) {
    auto options = std::make_shared<EvalOptions>();
    CLI::App* command = app.add_subcommand("eval", "compute energies, forces and stresses of structures");
    command->add_option("FILE", options->input, "structures in extended XYZ; '-' = standard input")->required();
    options->model.add_to(*command);
    add_json_option(*command, options->json);
    command->add_option("--output", options->output, "write the frames and their results as extended XYZ to OUT")
        ->option_text("OUT");
    command->add_flag("--forces", options->forces,
                      "print the force on every atom; without this, only for a file of up to 20 atoms");
    command->add_flag("--descriptors", options->descriptors,
                      "add the invariant features of every atom to --json and --output");
    command->footer(
        R"(Prints one line for each frame: energy in eV, largest force in eV/A, pressure in GPa. If the
file has up to 20 atoms in all its frames, or with --forces, the force on every atom follows.
With a committee (--model A,B,C), the numbers are the mean of its members, and a column has the
largest standard deviation of a force; --json and --output have that of every atom.
With a model that has a trust meter (`mlff trust fit`; the built-in student has one), a column has
the largest expected error of a force, and one line on stderr names atoms that are unlike anything
in training; --json and --output have the expected error of every atom.
The comment line of a frame may set total_charge, total_spin and head; head comes before --head.
Output files are written completely or not at all.

Examples:
  # Energies and forces with the embedded model
  mlff eval water.xyz
  # The same with a MACE model, in double precision, as JSON
  mlff eval water.xyz --model X.model --precision fp64 --json results.json
  # Frames with energies, forces and stresses, for other programs
  mlff eval water.xyz --output labelled.xyz)");
    command->callback([options, &work] { work = [options] { return run_eval(*options); }; });
}

}  // namespace mlff::app
