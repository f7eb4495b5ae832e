// SPDX-License-Identifier: MIT
// A report as one self-contained HTML page: it loads nothing and runs no scripts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mlff::report {

std::string html_escaped(std::string_view text);

// The whole page. `title` is escaped here; `body`, which follows the headline, is HTML.
std::string html_page(const std::string& title, const std::string& body);

// "pass" or "fail": both the text and the CSS class.
const char* verdict_class(bool is_passed);
std::string verdict_paragraph(bool is_passed, const std::string& sentence);  // the paragraph at the top

struct Cell {
    std::string text;            // escaped by html_table
    std::string css_class = "";  // "number", "note", "pass", "fail" or "undecided"; "" = plain text
};
std::string html_table(const std::vector<std::string>& header,
                       const std::vector<std::vector<Cell>>& rows);  // "" if there are no rows

}  // namespace mlff::report
