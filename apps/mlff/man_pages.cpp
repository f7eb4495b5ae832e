// SPDX-License-Identifier: MIT
#include "man_pages.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "command.h"
#include "core/error.h"
#include "help.h"

namespace mlff::app {
namespace {

using Apps = std::vector<const CLI::App*>;

Apps commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string roff_escaped(const std::string& text) {
    std::string escaped;
    for (char c : text) switch (c) {
            case '\\': escaped += "\\e"; break;
            case '-': escaped += "\\-"; break;
            case '\'': escaped += "\\(aq"; break;
            case '^': escaped += "\\(ha"; break;
            case '~': escaped += "\\(ti"; break;
            case '`': escaped += "\\(ga"; break;
            default: escaped += c;
        }
    return escaped;
}

// A line of text: a dot at its start would make it a request.
std::string roff_line(const std::string& text) {
    return (text.starts_with(".") || text.starts_with("'") ? "\\&" : "") + roff_escaped(text) + "\n";
}

std::string bold(const std::string& text) { return "\\fB" + roff_escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff_escaped(text) + "\\fR"; }

std::string upper_case(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

// "show the contents" -> "Show the contents."
std::string as_sentence(std::string text) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text + ".";
}

std::string page_name(const CLI::App& command) {
    return command.get_parent() ? page_name(*command.get_parent()) + "-" + command.get_name() : command.get_name();
}

std::string command_line(const CLI::App& command) {
    return command.get_parent() ? command_line(*command.get_parent()) + " " + command.get_name() : command.get_name();
}

// Arguments in italics, with the brackets of those that may be left out.
std::string synopsis(const CLI::App& command) {
    std::string text = bold(command_line(command));
    std::istringstream words(usage_arguments(command));
    for (std::string word; words >> word;)
        text += word[0] == '[' ? " [" + italic(word.substr(1, word.size() - 2)) + "]" : " " + italic(word);
    return text;
}

std::string entry(const std::string& title, const std::string& text) {
    return ".TP\n" + title + "\n" + roff_line(text);
}

std::string option_entry(const CLI::Option& option, bool is_positional) {
    const OptionTitle title = option_title(option, is_positional);
    std::string text;
    for (const std::string& name : title.names)
        text += (text.empty() ? "" : ", ") + (is_positional ? italic(name) : bold(name));
    if (!title.value.empty()) text += " " + italic(title.value);
    return entry(text, option_text(option, is_positional));
}

std::string option_entries(const CLI::App& command) {
    std::string text;
    for (const CLI::Option* option : command.get_options([](const CLI::Option* o) { return o->get_positional(); }))
        text += option_entry(*option, true);
    for (const std::string& group : command.get_groups()) {
        const auto options = command.get_options(
            [&](const CLI::Option* option) { return option->get_group() == group && option->nonpositional(); });
        if (group.empty() || options.empty()) continue;  // "" hides an option
        const bool is_first_group = group == command.get_help_ptr()->get_group();
        if (!is_first_group) text += ".SS " + roff_line(group);
        for (const CLI::Option* option : options) text += option_entry(*option, false);
    }
    return text;
}

std::string paragraphs(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line.empty() ? ".PP\n" : roff_line(line);
    return text;
}

// Lines that begin with # say what the next command does.
std::string examples(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
        if (line.starts_with("# "))
            text += ".PP\n" + roff_line(line.substr(2) + ":");
        else
            text += ".PP\n.RS 4\n.EX\n" + roff_line(line) + ".EE\n.RE\n";
    }
    return text;
}

// "KEY  text", where lines that begin with a space continue the text.
std::string entries(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
        const size_t end = line.find("  "), begin = line.find_first_not_of(' ', end);
        if (line.starts_with(" ") || end == std::string::npos)
            text += roff_line(line.substr(line.find_first_not_of(' ')));
        else
            text += entry(bold(line.substr(0, end)), line.substr(begin));
    }
    return text;
}

std::vector<std::string> section_lines(const CLI::App& command, const std::string& heading) {
    for (const FooterSection& section : footer_sections(command))
        if (section.heading == heading) return section.lines;
    return {};
}

std::string man_page(const CLI::App& app, const CLI::App& command) {
    const Apps nested = commands_of(command);
    const bool is_main = &app == &command;
    std::string text = ".\\\" Made by mlff --write-man-pages from the texts of --help.\n.TH " +
                       upper_case(roff_escaped(page_name(command))) +
                       " 1 \"\" \"mlff " MLFF_VERSION_STRING "\" \"mlff manual\"\n.nh\n.ad l\n.SH NAME\n" +
                       roff_escaped(page_name(command)) + " \\- " + roff_line(command.get_description()) +
                       ".SH SYNOPSIS\n";
    const Apps described = nested.empty() || is_main ? Apps{&command} : nested;
    for (const CLI::App* one : described) text += (one == described.front() ? "" : ".br\n") + synopsis(*one) + "\n";
    text += ".SH DESCRIPTION\n" + paragraphs(section_lines(command, ""));
    if (is_main) {
        text += ".SH COMMANDS\n";
        for (const CLI::App* one : nested) text += entry(bold(page_name(*one)) + "(1)", one->get_description());
    }
    text += ".SH OPTIONS\n" + option_entries(command);
    if (!is_main && !nested.empty()) text += ".SH COMMANDS\n";
    for (const CLI::App* one : is_main ? Apps{} : nested)
        text += ".SS " + roff_line(command_line(*one)) + roff_line(as_sentence(one->get_description())) +
                option_entries(*one);
    text += ".SH EXIT STATUS\n" + entries(section_lines(app, "Exit codes"));
    if (const auto lines = section_lines(command, "Environment"); !lines.empty())
        text += ".SH ENVIRONMENT\n" + entries(lines);
    text += ".SH EXAMPLES\n" + examples(section_lines(command, "Examples")) + ".SH SEE ALSO\n";
    Apps others = commands_of(app);
    if (!is_main) others.insert(others.begin(), &app);
    std::erase(others, &command);
    for (const CLI::App* one : others)
        text += ".BR " + roff_escaped(page_name(*one)) + (one == others.back() ? " (1)\n" : " (1),\n");
    return text;
}

}  // namespace

void write_man_pages(const CLI::App& app, const std::string& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail(Status::file, folder, ": cannot make the folder (", error.message(), ")");
    write_text(folder + "/" + page_name(app) + ".1", man_page(app, app));
    for (const CLI::App* command : commands_of(app))
        write_text(folder + "/" + page_name(*command) + ".1", man_page(app, *command));
}

}  // namespace mlff::app
