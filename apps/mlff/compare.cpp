// SPDX-License-Identifier: MIT
// mlff compare: two models, or one on two backends, frame by frame.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "command.h"
#include "core/elements.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "frame_result.h"
#include "sessions.h"
#include "tools/validate/check.h"
#include "tools/validate/differences.h"

namespace mlff::app {
namespace {

using validate::at_most;
using validate::Check;
using validate::Differences;
using validate::ForceDifferences;
using validate::WorstAtom;

constexpr int64_t kMostRowsPrinted = 40;

struct CompareOptions {
    ModelOptions a, b;
    std::string input, json;
    std::optional<double> energy_limit, force_limit, stress_limit;
};

// One of the two: its model, and the sessions of the heads of its frames.
class ComparedModel {
public:
    ComparedModel(const ModelOptions& options, const char* letter)
        : name_(options.model), letter_(letter), head_(options.session.head) {
        sessions_.emplace(load_model(options.model), options.session_options());
    }

    Session& session_for(const Frame& frame) {
        const std::string own = head_of(frame, sessions_->model(), "");
        // Not a warning, as elsewhere: a verdict would be about other heads than those that were asked for.
        if (!own.empty() && !head_.empty() && own != head_)
            fail(Status::argument, "the frame has head=", own, ", which comes before the chosen head ", head_,
                 "; remove it from the frame to compare heads");
        Session& session = sessions_->for_head(own.empty() ? head_ : own);
        device_ = session.device_name();
        precision_ = session.precision();
        return session;
    }

    FrameResult evaluate(const Frame& frame) {
        try {
            return evaluate_frame(session_for(frame), frame, {.even_if_not_finite = true});
        } catch (const Error& error) {
            throw Error(error.status(), concat("model ", letter_, ", ", name_, ": ", error.what()));
        }
    }

    Precision precision() const { return precision_; }
    std::string sentence() const {
        return concat(letter_, "  ", name_, " on ", device_, ", ", precision_name(precision_),
                      head_.empty() ? "" : ", head " + head_);
    }
    nlohmann::json json() const {
        return {{"model", name_},
                {"device", device_},
                {"precision", precision_name(precision_)},
                {"head", head_.empty() ? nlohmann::json() : nlohmann::json(head_)}};
    }

private:
    std::string name_, letter_, head_, device_;
    Precision precision_ = Precision::automatic;
    std::optional<Sessions> sessions_;
};

struct FrameDifference {
    int64_t atom_count = 0;
    double energy_a = 0, energy_b = 0;  // eV
    double largest_force = 0;           // eV/A apart
    double largest_stress = 0;          // eV/A^3 apart
    bool has_stress = false;            // of both models
};

struct Comparison {
    Differences energies;  // eV/atom
    ForceDifferences forces;
    Differences stresses;  // components
    std::vector<FrameDifference> frames;
    int64_t atom_count = 0;

    void add(const Frame& frame, const FrameResult& a, const FrameResult& b) {
        FrameDifference difference;
        difference.atom_count = frame.atom_count();
        difference.energy_a = a.energy;
        difference.energy_b = b.energy;
        if (frame.atom_count() > 0) energies.add((a.energy - b.energy) / static_cast<double>(frame.atom_count()));
        ForceDifferences of_frame;
        const auto index = static_cast<int64_t>(frames.size());
        of_frame.add_frame(index, frame.atomic_numbers, a.forces, b.forces);
        forces.add_frame(index, frame.atomic_numbers, a.forces, b.forces);
        difference.largest_force = of_frame.lengths().largest();
        difference.has_stress = a.has_stress && b.has_stress;
        Differences stress_of_frame;
        for (size_t k = 0; difference.has_stress && k < a.stress.size(); ++k) {
            stress_of_frame.add(a.stress[k] - b.stress[k]);
            stresses.add(a.stress[k] - b.stress[k]);
        }
        difference.largest_stress = stress_of_frame.largest();
        frames.push_back(difference);
        atom_count += frame.atom_count();
    }
};

// What rounding of the less precise of the two leaves, with room.
double limit_by_precision(Precision a, Precision b) {
    if (a == Precision::fast || b == Precision::fast) return 1e-2;
    return a == Precision::fp64 && b == Precision::fp64 ? 1e-7 : 1e-4;
}

std::string force_text(const std::array<double, 3>& force) {
    std::ostringstream text;
    text << std::setprecision(8) << force[0] << " " << force[1] << " " << force[2];
    return text.str();
}

std::string worst_text(const WorstAtom& worst) {
    if (worst.atom < 0) return "all forces are equal";
    return concat("atom ", worst.atom, " (", element_symbol(worst.atomic_number), ") of frame ", worst.frame);
}

nlohmann::json finite(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

nlohmann::json differences_json(const Differences& differences, double rms) {
    return {{"max", finite(differences.largest())}, {"mean", finite(differences.mean())}, {"rms", finite(rms)}};
}

nlohmann::json comparison_json(const CompareOptions& options, const ComparedModel& a, const ComparedModel& b,
                               const Comparison& comparison, const std::vector<Check>& checks) {
    nlohmann::json energy = differences_json(comparison.energies, comparison.energies.rms()),
                   forces = differences_json(comparison.forces.lengths(), comparison.forces.component_rms());
    energy["offset"] = finite(comparison.energies.offset());
    const WorstAtom& worst = comparison.forces.worst();
    if (worst.atom >= 0) {
        const auto row = [](const std::array<double, 3>& force) {
            return nlohmann::json{finite(force[0]), finite(force[1]), finite(force[2])};
        };
        forces["worst"] = {{"frame", worst.frame},
                           {"atom", worst.atom},
                           {"element", element_symbol(worst.atomic_number)},
                           {"a", row(worst.found)},
                           {"b", row(worst.expected)}};
    } else {
        forces["worst"] = nullptr;
    }
    nlohmann::json frames = nlohmann::json::array(), limits = nlohmann::json::array();
    for (const FrameDifference& frame : comparison.frames)
        frames.push_back(
            {{"atoms", frame.atom_count},
             {"energy_a", finite(frame.energy_a)},
             {"energy_b", finite(frame.energy_b)},
             {"max_force_difference", finite(frame.largest_force)},
             {"max_stress_difference", frame.has_stress ? finite(frame.largest_stress) : nlohmann::json()}});
    bool is_passed = true;
    for (const Check& check : checks) {
        limits.push_back({{"name", check.name},
                          {"value", finite(check.value)},
                          {"limit", check.upper},
                          {"unit", check.unit},
                          {"passed", check.is_passed()}});
        is_passed = is_passed && check.is_passed();
    }
    return {{"file", options.input},
            {"a", a.json()},
            {"b", b.json()},
            {"atoms", comparison.atom_count},
            {"energy_per_atom", energy},
            {"forces", forces},
            {"stress", comparison.stresses.count() ? differences_json(comparison.stresses, comparison.stresses.rms())
                                                   : nlohmann::json()},
            {"checks", limits},
            {"verdict", is_passed ? "pass" : "fail"},
            {"frames", frames}};
}

void print_comparison(const ComparedModel& a, const ComparedModel& b, const Comparison& comparison,
                      const std::vector<Check>& checks) {
    std::cout
        << a.sentence() << "\n"
        << b.sentence() << "\n\n"
        << " frame   atoms      energy A / eV      energy B / eV    dE/(eV/atom) max|dF|/(eV/A) max|dS|/(eV/A^3)\n";
    std::cout << std::scientific << std::setprecision(2);
    for (int64_t i = 0; i < std::min<int64_t>(kMostRowsPrinted, static_cast<int64_t>(comparison.frames.size())); ++i) {
        const FrameDifference& frame = comparison.frames[static_cast<size_t>(i)];
        std::cout << std::setw(6) << i << std::setw(8) << frame.atom_count << std::fixed << std::setprecision(6)
                  << std::setw(19) << frame.energy_a << std::setw(19) << frame.energy_b << std::scientific
                  << std::setprecision(2) << std::setw(16)
                  << (frame.energy_a - frame.energy_b) / static_cast<double>(std::max<int64_t>(1, frame.atom_count))
                  << std::setw(15) << frame.largest_force;
        if (frame.has_stress) std::cout << std::setw(17) << frame.largest_stress;
        std::cout << "\n";
    }
    if (static_cast<int64_t>(comparison.frames.size()) > kMostRowsPrinted)
        std::cout << "   ... " << static_cast<int64_t>(comparison.frames.size()) - kMostRowsPrinted
                  << " more frames; --json has all\n";
    const auto row = [](const char* what, double largest, double mean, double rms) {
        std::cout << std::left << std::setw(26) << what << std::right << std::setw(13) << largest << std::setw(13)
                  << mean << std::setw(13) << rms << "\n";
    };
    std::cout << "\n"
              << std::setw(39) << "largest" << std::setw(13) << "mean" << std::setw(13) << "rms"
              << "\n";
    row("energy, eV/atom", comparison.energies.largest(), comparison.energies.mean(), comparison.energies.rms());
    row("forces, eV/A", comparison.forces.lengths().largest(), comparison.forces.lengths().mean(),
        comparison.forces.component_rms());
    if (comparison.stresses.count())
        row("stress, eV/A^3", comparison.stresses.largest(), comparison.stresses.mean(), comparison.stresses.rms());
    const WorstAtom& worst = comparison.forces.worst();
    std::cout << "worst: " << worst_text(worst);
    if (worst.atom >= 0)
        std::cout << ", A " << force_text(worst.found) << ", B " << force_text(worst.expected) << " eV/A";
    std::cout << "\n\n";
    for (const Check& check : checks)
        std::cout << (check.is_passed() ? "pass  " : "FAIL  ") << check.name << ": " << check.value << " " << check.unit
                  << ", allowed " << check.upper << "\n";
}

double checked_limit(const std::optional<double>& given, double by_precision, const char* option) {
    if (given && !(std::isfinite(*given) && *given >= 0))
        fail(Status::argument, option, " ", *given, ": expected 0 or more");
    return given.value_or(by_precision);
}

int run_compare(const CompareOptions& options) {
    for (const auto& [limit, option] :
         {std::pair(options.energy_limit, "--tolerance-energy"), std::pair(options.force_limit, "--tolerance-forces"),
          std::pair(options.stress_limit, "--tolerance-stress")})
        checked_limit(limit, 0, option);
    ComparedModel a(options.a, "A"), b(options.b, "B");
    ExtxyzReader reader(options.input);
    Comparison comparison;
    Frame frame;
    while (reader.next(frame)) {
        try {
            const FrameResult found = a.evaluate(frame);
            comparison.add(frame, found, b.evaluate(frame));
        } catch (const Error& error) {
            throw Error(error.status(),
                        concat(options.input, ": frame ", comparison.frames.size(), ": ", error.what()));
        }
    }
    if (comparison.frames.empty()) fail(Status::format, options.input, ": no frame in the file");

    const double limit = limit_by_precision(a.precision(), b.precision());
    std::vector<Check> checks = {at_most("energy", comparison.energies.largest(),
                                         checked_limit(options.energy_limit, limit, "--tolerance-energy"), "eV/atom"),
                                 at_most("forces", comparison.forces.lengths().largest(),
                                         checked_limit(options.force_limit, limit, "--tolerance-forces"), "eV/A")};
    if (comparison.stresses.count())
        checks.push_back(at_most("stress", comparison.stresses.largest(),
                                 checked_limit(options.stress_limit, limit, "--tolerance-stress"), "eV/A^3"));
    if (options.json != "-") print_comparison(a, b, comparison, checks);
    if (!options.json.empty())
        write_text(options.json, comparison_json(options, a, b, comparison, checks)
                                         .dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
                                     "\n");
    return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.is_passed(); })
               ? kGood
               : kCheckFailed;
}

}  // namespace

void add_compare(CLI::App& app, Work& work) {
    auto options = std::make_shared<CompareOptions>();
    CLI::App* command =
        app.add_subcommand("compare", "compare two models, or one model on two devices, frame by frame");
    command->add_option("A", options->a.model, kModelHelp)->required();
    command->add_option("B", options->b.model, "the other model; may be A, on another device or in another precision")
        ->required();
    command->add_option("FILE", options->input, "structures in extended XYZ; '-' = standard input")->required();
    options->a.add_session_options(*command, "Model A", "-a");
    options->b.add_session_options(*command, "Model B", "-b");
    command
        ->add_option("--tolerance-energy", options->energy_limit,
                     "allowed difference of energies in eV/atom (default: 1e-7 if both are fp64, 1e-2 if one is fast, "
                     "else 1e-4)")
        ->option_text("LIMIT");
    command
        ->add_option("--tolerance-forces", options->force_limit,
                     "allowed difference of the force on an atom in eV/A (same default)")
        ->option_text("LIMIT");
    command
        ->add_option("--tolerance-stress", options->stress_limit,
                     "allowed difference of stress components in eV/A^3 (same default)")
        ->option_text("LIMIT");
    add_json_option(*command, options->json);
    command->footer(
        R"(Prints the differences of each frame, the largest, mean and rms differences, and the atom whose
forces differ most. The exit code is 1 if a difference exceeds its limit.

Examples:
  # The CPU kernels against the plain double-precision loops
  mlff compare X.model X.model water.xyz --device-b reference
  # A student against its teacher
  mlff compare student.safetensors X.model water.xyz --tolerance-forces 0.1 --tolerance-energy 0.01)");
    command->callback([options, &work] { work = [options] { return run_compare(*options); }; });
}

}  // namespace mlff::app
