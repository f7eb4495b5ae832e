// SPDX-License-Identifier: MIT
// The subcommands of mlff-train. Each adds itself to the command line, in its own file.
#pragma once

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace mlff::train {

using Work = std::function<int()>;  // set by the chosen subcommand; returns the exit code

void add_train(CLI::App& app, Work& work);
void add_evaluate(CLI::App& app, Work& work);
void add_predict(CLI::App& app, Work& work);
void add_random(CLI::App& app, Work& work);

}  // namespace mlff::train
