// SPDX-License-Identifier: MIT
// Plots as SVG inside an HTML page.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/validation.h"

namespace mlff::validate {

std::string html_escaped(std::string_view text);

struct Plot {
    std::string title, x_label, y_label;
    std::vector<Curve> curves;
    bool is_scatter = false;               // points instead of lines, and the diagonal on which x = y
    std::optional<double> highest_y;       // what is above is cut off
    std::optional<double> horizontal;      // a dashed line at this y
    std::optional<Curve> guide;            // a dashed line, not in the legend
};

std::string svg(const Plot& plot);  // <figure> with a caption; "" where there is no finite point

// Tick positions for [low, high], about five of them, at 1, 2 or 5 times a power of ten.
std::vector<double> nice_ticks(double low, double high);

}  // namespace mlff::validate
