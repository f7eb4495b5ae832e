// SPDX-License-Identifier: MIT
// The texts of --help. The man pages show the same texts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace mlff::app {

// "--dt FS", "-h, --help"; the name alone of a positional argument.
struct OptionTitle {
    std::vector<std::string> names;
    std::string value;  // "" for a flag and for a positional argument
};
OptionTitle option_title(const CLI::Option& option, bool is_positional);

// The description, followed by "(required)", the default and the options that exclude this one.
std::string option_text(const CLI::Option& option, bool is_positional);

// "[OPTIONS] FILE"
std::string usage_arguments(const CLI::App& command);

// The footer of a command has paragraphs and then sections. A section begins with a heading at the start of a line,
// "Examples:" for instance; its lines are indented by two spaces.
struct FooterSection {
    std::string heading;             // "" for the paragraphs; without the colon
    std::vector<std::string> lines;  // without the indentation
};
std::vector<FooterSection> footer_sections(const CLI::App& command);

// Wraps descriptions at 100 columns. Subcommands inherit it.
std::shared_ptr<CLI::FormatterBase> make_help_formatter();

}  // namespace mlff::app
