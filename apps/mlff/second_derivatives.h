// SPDX-License-Identifier: MIT
// What commands that need second derivatives have in common.
#pragma once

#include <optional>
#include <string>

#include "command.h"
#include "derivatives/hessian.h"
#include "progress_line.h"
#include "stop_signal.h"

namespace mlff::app {

struct SecondDerivativeOptions {
    ModelOptions model;
    HessianOptions hessian;
    void add_to(CLI::App& command);
    // Precision fp64 where the command line says "auto".
    SessionOptions session_options() const;
};

// Shows progress on a terminal, and ends the work when a signal has come.
class HessianRun {
public:
    // nullptr: stopped by a signal
    std::optional<Hessian> compute(Session& session, const SystemView& system, const HessianOptions& options,
                                   const std::string& name);
    bool is_stopped() const { return stop_.number() != 0; }
    int exit_code(const std::string& input) const;  // after a signal, with one sentence on standard error

private:
    StopSignal stop_;
};

}  // namespace mlff::app
