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

// From the horizontal line of the plot, without one from 0 (a logarithmic axis: from its lower end), to `y`; where low
// < high with a whisker between these.
struct Bar {
    double x_begin = 0, x_end = 0, y = 0;
    double low = 0, high = 0;
    size_t color = 0;  // that of the curve, or of the name in the legend, with this index
};

// A dashed line from bottom to top.
struct Mark {
    double x = 0;
    std::string label;
};

struct Plot {
    enum class Style { line, points, line_and_points };

    std::string title, x_label, y_label;
    std::vector<Curve> curves;
    Style style = Style::line;
    bool is_parity = false;                   // both axes alike, and the diagonal on which x = y
    bool is_log_x = false, is_log_y = false;  // what is not above 0 is left out
    std::optional<double> highest_y = {};     // what is above is cut off
    std::optional<double> lowest_y = {};      // where the axis begins
    std::optional<double> horizontal = {};    // a dashed line at this y
    std::optional<Curve> guide = {};          // a dashed line, not in the legend
    std::vector<Bar> bars = {};
    std::vector<Mark> marks = {};
    std::vector<std::string> legend = {};  // of the colours of bars; that of curves is made of their labels
    std::vector<std::pair<double, std::string>> x_names = {};  // in the place of ticks
};

std::string svg(const Plot& plot);  // <figure> with a caption; "" where there is no finite point

// Tick positions for [low, high], about five of them, at 1, 2 or 5 times a power of ten.
std::vector<double> nice_ticks(double low, double high);
// The same for a logarithmic axis, 0 < low: powers of ten, with 2 and 5 times these below three decades. Round numbers
// as above where those would be less than three.
std::vector<double> log_ticks(double low, double high);

}  // namespace mlff::report
