// SPDX-License-Identifier: MIT
#include "tools/report/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/report/html_page.h"

namespace mlff::report {
namespace {

constexpr double kWidth = 460, kHeight = 280, kLeft = 62, kRight = 12, kTop = 12, kBottom = 44;
constexpr const char* kColors[] = {"#1f5fa8", "#c2571a", "#2e7d4f", "#8a3a8f", "#7a6a00", "#00798c"};

std::string color_of(size_t index) { return kColors[index % std::size(kColors)]; }

std::string fixed(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

std::string tick_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.5g", value == 0 ? 0.0 : value);
    return text;
}

// One axis of a plot: its range of values, and their position, 0 to 1.
class Axis {
public:
    explicit Axis(bool is_log) : is_log_(is_log) {}

    bool has_place_for(double value) const { return std::isfinite(value) && (!is_log_ || value > 0); }
    void include(double value) {
        if (!has_place_for(value)) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    bool is_empty() const { return !(low <= high); }
    // Adds a margin at the ends, and some width if all values are equal.
    void widen(double part) {
        if (is_log_) {
            const double factor = high > low ? std::pow(high / low, part) : 1.1;
            low /= factor;
            high *= factor;
            return;
        }
        const double room = high > low ? part * (high - low) : std::max(1e-6, 0.1 * std::abs(low));
        low -= room;
        high += room;
    }
    double part(double value) const {
        return is_log_ ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    }
    double origin() const { return is_log_ ? low : std::clamp(0.0, low, high); }
    std::vector<double> ticks() const { return is_log_ ? log_ticks(low, high) : nice_ticks(low, high); }

    double low = INFINITY, high = -INFINITY;

private:
    bool is_log_;
};

class Canvas {
public:
    Canvas(const Axis& x, const Axis& y) : x_(x), y_(y) {}

    double across(double x) const { return kLeft + (kWidth - kLeft - kRight) * x_.part(x); }
    double down(double y) const {
        return kHeight - kBottom - (kHeight - kTop - kBottom) * y_.part(std::clamp(y, y_.low, y_.high));
    }
    bool is_inside(double x, double y) const { return x_.has_place_for(x) && y_.has_place_for(y); }

    void axes(const Plot& plot) {
        const auto below = [&](double at, const std::string& words) {
            text += "<text x=\"" + fixed(across(at)) + "\" y=\"" + fixed(kHeight - kBottom + 15) +
                    "\" text-anchor=\"middle\">" + html_escaped(words) + "</text>\n";
        };
        for (const auto& [at, name] : plot.x_names) below(at, name);
        if (plot.x_names.empty())
            for (double tick : x_.ticks()) {
                segment("grid", across(tick), kTop, across(tick), kHeight - kBottom);
                below(tick, tick_text(tick));
            }
        for (double tick : y_.ticks()) {
            segment("grid", kLeft, down(tick), kWidth - kRight, down(tick));
            text += "<text x=\"" + fixed(kLeft - 6) + "\" y=\"" + fixed(down(tick) + 4) + "\" text-anchor=\"end\">" +
                    tick_text(tick) + "</text>\n";
        }
        text += "<text x=\"" + fixed(0.5 * (kLeft + kWidth - kRight)) + "\" y=\"" + fixed(kHeight - 8) +
                "\" text-anchor=\"middle\">" + html_escaped(plot.x_label) + "</text>\n";
        const std::string middle = fixed(0.5 * (kTop + kHeight - kBottom));
        text += "<text transform=\"rotate(-90 14 " + middle + ")\" x=\"14\" y=\"" + middle +
                "\" text-anchor=\"middle\">" + html_escaped(plot.y_label) + "</text>\n";
    }

    void line(const Curve& curve, const std::string& style) {
        std::string path;
        bool is_open = false;
        for (size_t i = 0; i < curve.x.size(); ++i) {
            if (!is_inside(curve.x[i], curve.y[i])) {
                is_open = false;
                continue;
            }
            path += (is_open ? "L" : "M") + fixed(across(curve.x[i])) + " " + fixed(down(curve.y[i]));
            is_open = true;
        }
        if (!path.empty()) text += "<path " + style + " d=\"" + path + "\"/>\n";
    }

    void points(const Curve& curve, const std::string& color, double radius) {
        text += "<g class=\"points\" fill=\"" + color + "\">";
        for (size_t i = 0; i < curve.x.size(); ++i)
            if (is_inside(curve.x[i], curve.y[i]))
                text += "<circle r=\"" + fixed(radius) + "\" cx=\"" + fixed(across(curve.x[i])) + "\" cy=\"" +
                        fixed(down(curve.y[i])) + "\"/>";
        text += "</g>\n";
    }

    // Follows the upper end of the band, then goes back along the lower one.
    void band(const Curve& curve, const std::string& color) {
        std::string there, back;
        for (size_t i = 0; i < curve.x.size() && i < curve.low.size() && i < curve.high.size(); ++i) {
            if (!is_inside(curve.x[i], curve.low[i]) || !is_inside(curve.x[i], curve.high[i])) continue;
            there += (there.empty() ? "M" : "L") + fixed(across(curve.x[i])) + " " + fixed(down(curve.high[i]));
            back = "L" + fixed(across(curve.x[i])) + " " + fixed(down(curve.low[i])) + back;
        }
        if (!there.empty()) text += "<path class=\"band\" fill=\"" + color + "\" d=\"" + there + back + "Z\"/>\n";
    }

    void bar(const Bar& bar, double base) {
        if (!is_inside(bar.x_begin, bar.y) || !x_.has_place_for(bar.x_end)) return;
        const double left = across(bar.x_begin), right = across(bar.x_end), top = down(bar.y), bottom = down(base),
                     middle = 0.5 * (left + right);
        text += "<rect class=\"bar\" fill=\"" + color_of(bar.color) + "\" x=\"" + fixed(left) + "\" y=\"" +
                fixed(std::min(top, bottom)) + "\" width=\"" + fixed(right - left) + "\" height=\"" +
                fixed(std::abs(bottom - top)) + "\"/>\n";
        if (bar.low < bar.high && y_.has_place_for(bar.low))
            segment("whisker", middle, down(bar.low), middle, down(bar.high));
    }

    // `row` counts marks from the left, so that adjacent labels are on different lines.
    void mark(const Mark& mark, size_t row) {
        if (!x_.has_place_for(mark.x)) return;
        const double at = across(mark.x);
        segment("guide", at, kTop, at, kHeight - kBottom);
        const bool is_right = at > 0.75 * kWidth;
        text += "<text x=\"" + fixed(at + (is_right ? -4 : 4)) + "\" y=\"" +
                fixed(kTop + 10 + 13 * static_cast<double>(row)) + "\" text-anchor=\"" + (is_right ? "end" : "start") +
                "\">" + html_escaped(mark.label) + "</text>\n";
    }

    std::string text;

private:
    void segment(const std::string& css_class, double x1, double y1, double x2, double y2) {
        text += "<line class=\"" + css_class + "\" x1=\"" + fixed(x1) + "\" x2=\"" + fixed(x2) + "\" y1=\"" +
                fixed(y1) + "\" y2=\"" + fixed(y2) + "\"/>";
    }

    Axis x_, y_;
};

std::string legend_text(const Plot& plot) {
    std::vector<std::string> names = plot.legend;
    if (names.empty() && plot.curves.size() > 1)
        for (const Curve& curve : plot.curves) names.push_back(curve.label);
    std::string text;
    for (size_t i = 0; i < names.size(); ++i)
        if (!names[i].empty())
            text += "<span><i style=\"background:" + color_of(i) + "\"></i>" + html_escaped(names[i]) + "</span> ";
    if (!plot.overlay_name.empty()) text += "<span>" + html_escaped(plot.overlay_name) + "</span>";
    return text.empty() ? "" : "<div class=\"legend\">" + text + "</div>";
}

// The ranges shown, with a margin.
std::pair<Axis, Axis> axes_of(const Plot& plot) {
    Axis x(plot.is_log_x), y(plot.is_log_y);
    for (const std::vector<Curve>* curves : {&plot.curves, &plot.overlays})
        for (const Curve& curve : *curves) {
            for (size_t i = 0; i < curve.x.size(); ++i) {
                x.include(curve.x[i]);
                y.include(curve.y[i]);
            }
            for (const std::vector<double>* end : {&curve.low, &curve.high})
                for (double value : *end) y.include(value);
        }
    for (const Bar& bar : plot.bars) {
        for (double value : {bar.x_begin, bar.x_end}) x.include(value);
        for (double value : {bar.y, bar.low, bar.high, 0.0}) y.include(value);
    }
    if (x.is_empty() || y.is_empty()) return {x, y};
    for (const Mark& mark : plot.marks) x.include(mark.x);
    if (plot.horizontal) y.include(*plot.horizontal);
    if (plot.guide)
        for (double value : plot.guide->y) y.include(value);
    if (plot.is_parity) x.low = y.low = std::min(x.low, y.low), x.high = y.high = std::max(x.high, y.high);
    x.widen(plot.style == Plot::Style::line && plot.x_names.empty() ? 0.0 : 0.04);
    const bool begins_at_zero = !plot.is_log_y && !plot.bars.empty() && y.low == 0;
    y.widen(0.06);
    if (begins_at_zero) y.low = 0;
    if (plot.lowest_y) y.low = *plot.lowest_y;
    if (plot.highest_y) y.high = std::min(y.high, *plot.highest_y);
    return {x, y};
}

}  // namespace

std::vector<double> nice_ticks(double low, double high) {
    if (!(high > low) || !std::isfinite(high - low)) return {};
    const double rough = (high - low) / 5, power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (double factor : {5.0, 2.0, 1.0})
        if (factor * power >= rough) step = factor * power;
    std::vector<double> ticks;
    for (double index = std::ceil(low / step); index * step <= high; ++index) ticks.push_back(index * step);
    return ticks;
}

std::vector<double> log_ticks(double low, double high) {
    if (!(low > 0) || !(high > low) || !std::isfinite(high)) return {};
    const bool is_wide = std::log10(high / low) > 3;
    std::vector<double> ticks;
    for (double exponent = std::floor(std::log10(low)); exponent <= std::log10(high); ++exponent)
        for (double factor : {1.0, 2.0, 5.0}) {
            const double tick = factor * std::pow(10.0, exponent);
            if (tick >= low && tick <= high && (factor == 1 || !is_wide)) ticks.push_back(tick);
        }
    return ticks.size() < 3 ? nice_ticks(low, high) : ticks;
}

std::string svg(const Plot& plot) {
    const auto [x, y] = axes_of(plot);
    if (x.is_empty() || y.is_empty()) return "";
    Canvas canvas(x, y);
    canvas.axes(plot);
    const std::string dashed = "class=\"guide\"";
    if (plot.is_parity) canvas.line({"", {x.low, x.high}, {x.low, x.high}}, dashed);
    for (size_t i = 0; i < plot.curves.size(); ++i) canvas.band(plot.curves[i], color_of(i));
    for (const Bar& bar : plot.bars) canvas.bar(bar, plot.horizontal.value_or(y.origin()));
    for (size_t i = 0; i < plot.curves.size(); ++i) {
        if (plot.style != Plot::Style::points)
            canvas.line(plot.curves[i], "class=\"curve\" stroke=\"" + color_of(i) + "\"");
        if (plot.style != Plot::Style::line) canvas.points(plot.curves[i], color_of(i), plot.is_parity ? 1.6 : 3);
    }
    for (size_t i = 0; i < plot.overlays.size(); ++i)
        canvas.line(plot.overlays[i], "class=\"curve overlay\" stroke=\"" + color_of(i) + "\"");
    if (plot.horizontal) canvas.line({"", {x.low, x.high}, {*plot.horizontal, *plot.horizontal}}, dashed);
    if (plot.guide) canvas.line(*plot.guide, dashed);
    for (size_t i = 0; i < plot.marks.size(); ++i) canvas.mark(plot.marks[i], i);
    return "<figure><figcaption>" + html_escaped(plot.title) + "</figcaption>\n<svg viewBox=\"0 0 " + fixed(kWidth) +
           " " + fixed(kHeight) + "\" role=\"img\" aria-label=\"" + html_escaped(plot.title) + "\">\n" + canvas.text +
           "</svg>" + legend_text(plot) + "</figure>\n";
}

}  // namespace mlff::report
