// SPDX-License-Identifier: MIT
// mlff hessian: second derivatives of the energy.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "formats/extxyz.h"
#include "second_derivatives.h"
#include "sessions.h"

namespace mlff::app {
namespace {

using Json = nlohmann::json;

struct HessianCommandOptions {
    std::string input, json;
    SecondDerivativeOptions derivatives;
};

Json rows_of(const std::vector<double>& values, size_t width) {
    Json rows = Json::array();
    for (size_t row = 0; row < width; ++row)
        rows.push_back(std::vector<double>(values.begin() + static_cast<std::ptrdiff_t>(row * width),
                                           values.begin() + static_cast<std::ptrdiff_t>((row + 1) * width)));
    return rows;
}

Json frame_json(const Frame& frame, const Hessian& hessian) {
    return {{"atoms", frame.atom_count()},
            {"hessian", rows_of(hessian.values, static_cast<size_t>(3 * frame.atom_count()))},
            {"step", hessian.step},
            {"extrapolated", hessian.is_extrapolated},
            {"step_error", hessian.step_error},
            {"asymmetry", hessian.asymmetry},
            {"sum_rule_error", hessian.sum_rule_error},
            {"evaluations", hessian.evaluation_count},
            {"symmetry_operations", hessian.operation_count}};
}

void print_header() {
    std::cout << std::setw(6) << "frame" << std::setw(8) << "atoms" << std::setw(13) << "evaluations" << std::setw(12)
              << "operations" << std::setw(16) << "max|H|/(eV/A^2)" << std::setw(13) << "step error" << std::setw(12)
              << "asymmetry" << std::setw(12) << "sum rule"
              << "\n";
}

void print_row(int64_t index, const Frame& frame, const Hessian& hessian) {
    double largest = 0;
    for (const double value : hessian.values) largest = std::max(largest, std::abs(value));
    std::cout << std::setw(6) << index << std::setw(8) << frame.atom_count() << std::setw(13)
              << hessian.evaluation_count << std::setw(12) << hessian.operation_count << std::fixed
              << std::setprecision(6) << std::setw(16) << largest << std::scientific << std::setprecision(1)
              << std::setw(13) << hessian.step_error << std::setw(12) << hessian.asymmetry << std::setw(12)
              << hessian.sum_rule_error << std::defaultfloat << (hessian.is_extrapolated ? "   extrapolated" : "")
              << "\n";
}

int run_hessian(const HessianCommandOptions& options) {
    check_outputs("", "", options.json);
    Sessions sessions(load_model(options.derivatives.model.model), options.derivatives.session_options());
    HessianRun run;
    ExtxyzReader reader(options.input);
    Json frames = Json::array();
    Frame frame;
    std::string device;
    while (reader.next(frame)) {
        const int64_t index = reader.frames_read() - 1;
        const std::string name = concat(options.input, ": frame ", index);
        try {
            Session& session = sessions.for_frame(frame);
            const auto hessian = run.compute(session, frame.view(), options.derivatives.hessian, name);
            if (!hessian) return run.exit_code(options.input);
            if (index == 0 && options.json != "-") print_header();
            if (options.json != "-") print_row(index, frame, *hessian);
            if (!options.json.empty()) frames.push_back(frame_json(frame, *hessian));
            device = session.device_name();
        } catch (const Error& error) {
            throw Error(error.status(), concat(name, ": ", error.what()));
        }
    }
    if (reader.frames_read() == 0) fail(Status::format, options.input, ": no frame in the file");
    if (!options.json.empty())
        write_text(
            options.json,
            Json{{"model", options.derivatives.model.model}, {"device", device}, {"frames", frames}}.dump() + "\n");
    return kGood;
}

}  // namespace

void add_hessian(CLI::App& app, Work& work) {
    auto options = std::make_shared<HessianCommandOptions>();
    CLI::App* command = app.add_subcommand("hessian", "compute second derivatives of the energy");
    command->add_option("FILE", options->input, "structures in extended XYZ; '-' = standard input")->required();
    options->derivatives.add_to(*command);
    add_json_option(*command, options->json);
    command->footer(
        R"(Central differences of forces in double precision, many displaced copies in one batch. Of a few
displacements the error of the step is measured; where it is more than 3e-6 of the largest number,
all are repeated with twice the step, and the leading error is removed ("extrapolated").
In a molecule, displacements that symmetry makes equal are computed once.
Prints one line for each frame: the largest number in eV/A^2, the error of the step, the largest
difference from a symmetric matrix, and the largest sum over atoms, which is 0 in theory. --json has
the matrix, [3 atoms][3 atoms], made symmetric.

Examples:
  mlff hessian water.xyz --json hessian.json
  # With a MACE model, on a GPU
  mlff hessian molecules.xyz --model X.model --device cuda --json hessians.json)");
    command->callback([options, &work] { work = [options] { return run_hessian(*options); }; });
}

}  // namespace mlff::app
