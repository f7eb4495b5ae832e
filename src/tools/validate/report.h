// SPDX-License-Identifier: MIT
// The validation report as JSON, Markdown and HTML.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/report/html_page.h"
#include "tools/validate/validation.h"

namespace mlff::validate {

nlohmann::json report_json(const Report& report);
std::string report_markdown(const Report& report);
std::string report_html(const Report& report);  // one self-contained page with its plots

// "PASS: ..." or "FAIL: ..." with the checks that failed, and how many are undecided.
std::string verdict_sentence(const Report& report);
// "pass", "FAIL" or "pass, 2 undecided".
std::string verdict_text(const SystemReport& system);

// The same figure of the model under test and of the other model.
struct SideBySide {
    std::string name, model, other;
    std::optional<Verdict> verdict = {};  // on the other model; none for a figure without a limit
};
// Empty if the other model was not run.
std::vector<SideBySide> side_by_side(const SystemReport& system);
// What the other model did: how many steps, and whether it broke. "" if it was not run.
std::string other_sentence(const SystemReport& system);

// "-21.6 +- 8.4 meV/atom/ns" and "-50 to 50".
std::string value_text(const Check& check);
std::string range_text(const Check& check);
// Additional remarks: the note, and how many steps would decide. "" = none.
std::string remark_text(const Check& check);

// A row of the table of checks on the HTML page: name, value, range, verdict, note.
std::vector<report::Cell> check_cells(const Check& check);
inline const std::vector<std::string> kCheckHeader = {"check", "found", "allowed", "", ""};

// Escapes text for a cell of a Markdown table, where HTML would be interpreted.
std::string markdown_cell(const std::string& text);

}  // namespace mlff::validate
