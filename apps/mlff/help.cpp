// SPDX-License-Identifier: MIT
#include "help.h"

#include <algorithm>
#include <sstream>

namespace mlff::app {
namespace {

constexpr size_t kHelpWidth = 100, kHelpColumn = 30;

// "  title                       text", wrapped; a long title has a line of its own.
std::string help_entry(const std::string& title, const std::string& text) {
    std::string entry = "  " + title;
    if (entry.size() + 1 > kHelpColumn) entry += "\n";
    size_t column = entry.back() == '\n' ? 0 : entry.size();
    std::istringstream words(text);
    bool is_first = true;
    for (std::string word; words >> word; is_first = false) {
        if (!is_first && column + 1 + word.size() > kHelpWidth) entry += "\n", column = 0;
        const size_t spaces = is_first || column == 0 ? kHelpColumn - column : 1;
        entry += std::string(spaces, ' ') + word;
        column += spaces + word.size();
    }
    return entry + "\n";
}

class HelpFormatter : public CLI::Formatter {
public:
    std::string make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const override {
        return CLI::detail::find_and_replace(Formatter::make_help(command, name, mode), "\n\n\n", "\n\n");
    }
    std::string make_option(const CLI::Option* option, bool is_positional) const override {
        const OptionTitle title = option_title(*option, is_positional);
        return help_entry(CLI::detail::join(title.names, ", ") + (title.value.empty() ? "" : " " + title.value),
                          option_text(*option, is_positional));
    }
    std::string make_subcommands(const CLI::App* command, CLI::AppFormatMode) const override {
        std::string text;
        for (const CLI::App* one : command->get_subcommands([](const CLI::App*) { return true; }))
            text += help_entry(one->get_name(), one->get_description());
        return text.empty() ? "" : "\nCommands:\n" + text;
    }
    std::string make_description(const CLI::App* command) const override { return command->get_description() + "\n\n"; }
    std::string make_usage(const CLI::App* command, std::string name) const override {
        return "Usage: " + name + " " + usage_arguments(*command) + "\n";
    }
    std::string make_footer(const CLI::App* command) const override {
        return command->get_footer().empty() ? "" : command->get_footer() + "\n";
    }
};

}  // namespace

OptionTitle option_title(const CLI::Option& option, bool is_positional) {
    if (is_positional) return {{option.get_name(true, false)}, ""};
    OptionTitle title;
    for (const std::string& name : option.get_snames()) title.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) title.names.push_back("--" + name);
    if (option.get_type_size() != 0)
        title.value = option.get_option_text().empty() ? option.get_type_name() : option.get_option_text();
    return title;
}

std::string option_text(const CLI::Option& option, bool is_positional) {
    std::string text = option.get_description();
    std::string value = option.get_default_str();
    if (value.size() > 2 && value.front() == '[' && value.back() == ']') value = value.substr(1, value.size() - 2);
    if (option.get_required() && !is_positional) text += " (required)";
    if (!value.empty() && option.get_type_size() != 0) text += " (default: " + value + ")";
    std::vector<std::string> excluded;
    for (const CLI::Option* other : option.get_excludes()) excluded.push_back(other->get_name());
    std::sort(excluded.begin(), excluded.end());
    if (!excluded.empty()) text += " (not with " + CLI::detail::join(excluded, ", ") + ")";
    return text;
}

std::string usage_arguments(const CLI::App& command) {
    std::string text = "[OPTIONS]";
    for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
        const std::string name = option->get_name(true, false);
        text += " " + (option->get_required() ? name : "[" + name + "]");
    }
    if (!command.get_subcommands([](const CLI::App*) { return true; }).empty()) text += " COMMAND";
    return text;
}

std::vector<FooterSection> footer_sections(const CLI::App& command) {
    std::vector<FooterSection> sections(1);
    std::istringstream lines(command.get_footer());
    for (std::string line; std::getline(lines, line);) {
        const bool is_heading = line.size() > 1 && line[0] != ' ' && line.back() == ':' && line.size() < 20;
        if (is_heading)
            sections.push_back({line.substr(0, line.size() - 1), {}});
        else
            sections.back().lines.push_back(line.starts_with("  ") ? line.substr(2) : line);
    }
    for (FooterSection& section : sections)
        while (!section.lines.empty() && section.lines.back().empty()) section.lines.pop_back();
    return sections;
}

std::shared_ptr<CLI::FormatterBase> make_help_formatter() {
    auto formatter = std::make_shared<HelpFormatter>();
    for (const char* name : {"Positionals", "POSITIONALS"}) formatter->label(name, "Arguments");  // by CLI11's version
    return formatter;
}

}  // namespace mlff::app
