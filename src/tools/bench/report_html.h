// SPDX-License-Identifier: MIT
// The results as one self-contained HTML page with plots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bench/baseline.h"
#include "tools/bench/results.h"
#include "tools/report/html_page.h"
#include "tools/report/svg_plot.h"

namespace mlff::bench {

std::string report_html(const Report& report, const std::optional<Comparison>& baseline = {});

// Parts shared by the pages about measurements.
std::vector<std::vector<report::Cell>> fact_rows(const RunFacts& facts);
report::Curve time_curve(const std::string& label,
                         const std::vector<const Row*>& rows);  // atoms, median in ms, and a band up to P95
std::string list_section(const std::string& title, const std::vector<std::string>& lines);  // "" if there are none
std::string plots_div(const std::string& figures);

}  // namespace mlff::bench
