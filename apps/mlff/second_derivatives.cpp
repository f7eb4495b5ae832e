// SPDX-License-Identifier: MIT
#include "second_derivatives.h"

#include <iostream>

#include "core/error.h"

namespace mlff::app {

void SecondDerivativeOptions::add_to(CLI::App& command) {
    model.add_to(command);
    command.add_option("--step", hessian.step, "length of displacements, in A")
        ->capture_default_str()
        ->option_text("LENGTH");
    command
        .add_option("--symmetry", hessian.symmetry_tolerance,
                    "molecules: atoms may be so far, in A, from symmetric places; 0 = no symmetry")
        ->capture_default_str()
        ->option_text("LENGTH");
}

SessionOptions SecondDerivativeOptions::session_options() const {
    SessionOptions options = model.session_options();
    if (options.precision == Precision::automatic) options.precision = Precision::fp64;
    if (options.precision != Precision::fp64)
        fail(Status::argument, "--precision ", model.precision, ": second derivatives need fp64");
    return options;
}

std::optional<Hessian> HessianRun::compute(Session& session, const SystemView& system, const HessianOptions& options,
                                           const std::string& name) {
    ProgressLine line(name);
    try {
        return compute_hessian(session, system, options, [&](double part) {
            line.show("displacements", part);
            return !is_stopped();
        });
    } catch (const Error&) {
        if (!is_stopped()) throw;
        return {};
    }
}

int HessianRun::exit_code(const std::string& input) const {
    std::cerr << "mlff: " << input << ": stopped by a signal before all frames were done; no results were written\n";
    return kStoppedBySignal + stop_.number();
}

}  // namespace mlff::app
