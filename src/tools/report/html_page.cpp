// SPDX-License-Identifier: MIT
#include "tools/report/html_page.h"

namespace mlff::report {
namespace {

constexpr const char* kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1f23; background: #fff; max-width: 1010px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; overflow-wrap: anywhere; } h2 { font-size: 1.2em; margin-top: 2em; border-top: 1px solid #d7dbe0; padding-top: 1em; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25em .8em .25em 0; border-bottom: 1px solid #e6e9ec; vertical-align: top; }
th { font-weight: 600; } td.note { color: #5a626b; font-size: .9em; overflow-wrap: anywhere; } td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.verdict { padding: .7em 1em; border-radius: 6px; overflow-wrap: anywhere; } .pass { background: #e6f4ea; color: #14532d; } .fail { background: #fdeaea; color: #7f1d1d; }
.undecided { color: #854d0e; } td.pass, td.fail, td.undecided { background: none; font-weight: 600; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 1em; }
figure { margin: 1em 0 0; max-width: 500px; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: #3b424a; }
.grid { stroke: #e3e6ea; } .curve { fill: none; stroke-width: 1.3; } .guide { fill: none; stroke: #555; stroke-dasharray: 5 4; } .points { fill-opacity: .45; }
.overlay { stroke-dasharray: 4 2.5; } .band { fill-opacity: .15; } .bar { fill-opacity: .75; } .whisker { stroke: #1c1f23; }
.legend { font-size: .85em; } .legend i { display: inline-block; width: 1em; height: .25em; margin-right: .3em; vertical-align: middle; }
)";

}  // namespace

std::string html_escaped(std::string_view text) {
    std::string escaped;
    for (char letter : text) switch (letter) {
            case '&': escaped += "&amp;"; break;
            case '<': escaped += "&lt;"; break;
            case '>': escaped += "&gt;"; break;
            case '"': escaped += "&quot;"; break;
            case '\'': escaped += "&#39;"; break;
            default: escaped += letter;
        }
    return escaped;
}

std::string html_page(const std::string& title, const std::string& body) {
    const std::string escaped = html_escaped(title);
    return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
           "content=\"width=device-width\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" +
           escaped + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n<h1>" + escaped + "</h1>\n" + body +
           "</body>\n</html>\n";
}

const char* verdict_class(bool is_passed) { return is_passed ? "pass" : "fail"; }

std::string verdict_paragraph(bool is_passed, const std::string& sentence) {
    return std::string("<p id=\"verdict\" class=\"verdict ") + verdict_class(is_passed) + "\">" +
           html_escaped(sentence) + "</p>\n";
}

std::string html_table(const std::vector<std::string>& header, const std::vector<std::vector<Cell>>& rows) {
    if (rows.empty()) return "";
    std::string text = "<table><tr>";
    for (const std::string& name : header) text += "<th>" + html_escaped(name) + "</th>";
    text += "</tr>\n";
    for (const std::vector<Cell>& row : rows) {
        text += "<tr>";
        for (const Cell& cell : row)
            text += (cell.css_class.empty() ? std::string("<td>") : "<td class=\"" + cell.css_class + "\">") +
                    html_escaped(cell.text) + "</td>";
        text += "</tr>\n";
    }
    return text + "</table>\n";
}

}  // namespace mlff::report
