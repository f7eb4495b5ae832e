// SPDX-License-Identifier: MIT
// Man pages, made from the same texts as --help.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace mlff::app {

// Writes mlff.1 and a page for each subcommand, mlff-eval.1 for instance, into the folder, which it makes if needed.
// Commands of a subcommand are described on its page. Throws Error{file}.
void write_man_pages(const CLI::App& app, const std::string& folder);

}  // namespace mlff::app
