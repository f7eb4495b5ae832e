// SPDX-License-Identifier: MIT
// Plots as SVG inside an HTML page.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlff::report {

struct Curve {
    std::string label;
    std::vector<double> x, y;
    std::vector<double> low = {}, high = {};  // a band behind the curve; empty = none
};

// A bar from the plot's horizontal line (without one: from 0, or from the lower end of a logarithmic axis) to `y`. If
// low < high, it has a whisker between them.
struct Bar {
    double x_begin = 0, x_end = 0, y = 0;
    double low = 0, high = 0;
    size_t color = 0;  // index of a curve, or of a name in the legend
};

// A vertical dashed line.
struct Mark {
    double x = 0;
    std::string label;
};

struct Plot {
    enum class Style { line, points, line_and_points };

    std::string title, x_label, y_label;
    std::vector<Curve> curves;
    Style style = Style::line;
    bool is_parity = false;                   // equal axes, with the diagonal x = y
    bool is_log_x = false, is_log_y = false;  // values not above 0 are omitted
    std::optional<double> highest_y = {};     // larger values are clipped
    std::optional<double> lowest_y = {};      // where the axis begins
    std::optional<double> horizontal = {};    // a horizontal dashed line at this y
    std::optional<Curve> guide = {};          // a dashed line, not in the legend
    std::vector<Curve> overlays = {};         // dashed lines, each in the colour of the curve with its index
    std::string overlay_name = "";            // for the legend
    std::vector<Bar> bars = {};
    std::vector<Mark> marks = {};
    std::vector<std::string> legend = {};                      // for the colours of bars; curves use their labels
    std::vector<std::pair<double, std::string>> x_names = {};  // instead of ticks
};

std::string svg(const Plot& plot);  // <figure> with a caption; "" without a finite point

// About five tick positions for [low, high], at 1, 2 or 5 times a power of ten.
std::vector<double> nice_ticks(double low, double high);
// The same for a logarithmic axis, 0 < low: powers of ten and, below three decades, 2 and 5 times these. If these are
// fewer than three, round numbers as above.
std::vector<double> log_ticks(double low, double high);

}  // namespace mlff::report
