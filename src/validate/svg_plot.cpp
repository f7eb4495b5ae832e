// SPDX-License-Identifier: MIT
#include "validate/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace mlff::validate {
namespace {

constexpr double kWidth = 460, kHeight = 280, kLeft = 62, kRight = 12, kTop = 12, kBottom = 44;
constexpr const char* kColors[] = {"#1f5fa8", "#c2571a", "#2e7d4f", "#8a3a8f", "#7a6a00", "#00798c"};

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

struct Range {
    double low = INFINITY, high = -INFINITY;

    void include(double value) {
        if (!std::isfinite(value)) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    bool is_empty() const { return !(low <= high); }
    // A little room at the ends, and some width where all values are the same.
    void widen(double part) {
        const double room = high > low ? part * (high - low) : std::max(1e-6, 0.1 * std::abs(low));
        low -= room;
        high += room;
    }
};

class Canvas {
public:
    Canvas(const Range& x, const Range& y) : x_(x), y_(y) {}

    double across(double x) const { return kLeft + (kWidth - kLeft - kRight) * (x - x_.low) / (x_.high - x_.low); }
    double down(double y) const { return kHeight - kBottom - (kHeight - kTop - kBottom) * (y - y_.low) / (y_.high - y_.low); }

    void axes(const Plot& plot) {
        for (double tick : nice_ticks(x_.low, x_.high))
            text += "<line class=\"grid\" x1=\"" + fixed(across(tick)) + "\" x2=\"" + fixed(across(tick)) + "\" y1=\"" + fixed(kTop) + "\" y2=\"" + fixed(kHeight - kBottom) +
                    "\"/><text x=\"" + fixed(across(tick)) + "\" y=\"" + fixed(kHeight - kBottom + 15) + "\" text-anchor=\"middle\">" + tick_text(tick) + "</text>\n";
        for (double tick : nice_ticks(y_.low, y_.high))
            text += "<line class=\"grid\" x1=\"" + fixed(kLeft) + "\" x2=\"" + fixed(kWidth - kRight) + "\" y1=\"" + fixed(down(tick)) + "\" y2=\"" + fixed(down(tick)) +
                    "\"/><text x=\"" + fixed(kLeft - 6) + "\" y=\"" + fixed(down(tick) + 4) + "\" text-anchor=\"end\">" + tick_text(tick) + "</text>\n";
        text += "<text x=\"" + fixed(0.5 * (kLeft + kWidth - kRight)) + "\" y=\"" + fixed(kHeight - 8) + "\" text-anchor=\"middle\">" + html_escaped(plot.x_label) + "</text>\n";
        const std::string middle = fixed(0.5 * (kTop + kHeight - kBottom));
        text += "<text transform=\"rotate(-90 14 " + middle + ")\" x=\"14\" y=\"" + middle + "\" text-anchor=\"middle\">" + html_escaped(plot.y_label) + "</text>\n";
    }

    void line(const Curve& curve, const std::string& style) {
        std::string path;
        bool is_open = false;
        for (size_t i = 0; i < curve.x.size(); ++i) {
            if (!std::isfinite(curve.x[i]) || !std::isfinite(curve.y[i])) {
                is_open = false;
                continue;
            }
            path += (is_open ? "L" : "M") + fixed(across(curve.x[i])) + " " + fixed(down(std::clamp(curve.y[i], y_.low, y_.high)));
            is_open = true;
        }
        if (!path.empty()) text += "<path " + style + " d=\"" + path + "\"/>\n";
    }

    void points(const Curve& curve, const std::string& color) {
        text += "<g class=\"points\" fill=\"" + color + "\">";
        for (size_t i = 0; i < curve.x.size(); ++i)
            if (std::isfinite(curve.x[i]) && std::isfinite(curve.y[i]))
                text += "<circle r=\"1.6\" cx=\"" + fixed(across(curve.x[i])) + "\" cy=\"" + fixed(down(curve.y[i])) + "\"/>";
        text += "</g>\n";
    }

    std::string text;

private:
    Range x_, y_;
};

std::string legend(const std::vector<Curve>& curves) {
    if (curves.size() < 2) return "";
    std::string text;
    for (size_t i = 0; i < curves.size(); ++i)
        text += "<span><i style=\"background:" + std::string(kColors[i % std::size(kColors)]) + "\"></i>" + html_escaped(curves[i].label) + "</span> ";
    return "<div class=\"legend\">" + text + "</div>";
}

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

std::string svg(const Plot& plot) {
    Range x, y;
    for (const Curve& curve : plot.curves)
        for (size_t i = 0; i < curve.x.size(); ++i) {
            x.include(curve.x[i]);
            y.include(curve.y[i]);
        }
    if (x.is_empty() || y.is_empty()) return "";
    if (plot.horizontal) y.include(*plot.horizontal);
    if (plot.is_scatter) x.low = y.low = std::min(x.low, y.low), x.high = y.high = std::max(x.high, y.high);
    x.widen(plot.is_scatter ? 0.04 : 0.0);
    y.widen(0.06);
    if (plot.highest_y) y.high = std::min(y.high, *plot.highest_y);

    Canvas canvas(x, y);
    canvas.axes(plot);
    const std::string dashed = "class=\"guide\"";
    if (plot.is_scatter) canvas.line({"", {x.low, x.high}, {x.low, x.high}}, dashed);
    for (size_t i = 0; i < plot.curves.size(); ++i) {
        const std::string color = kColors[i % std::size(kColors)];
        if (plot.is_scatter)
            canvas.points(plot.curves[i], color);
        else
            canvas.line(plot.curves[i], "class=\"curve\" stroke=\"" + color + "\"");
    }
    if (plot.horizontal) canvas.line({"", {x.low, x.high}, {*plot.horizontal, *plot.horizontal}}, dashed);
    if (plot.guide) canvas.line(*plot.guide, dashed);
    return "<figure><figcaption>" + html_escaped(plot.title) + "</figcaption>\n<svg viewBox=\"0 0 " + fixed(kWidth) + " " + fixed(kHeight) + "\" role=\"img\" aria-label=\"" +
           html_escaped(plot.title) + "\">\n" + canvas.text + "</svg>" + legend(plot.curves) + "</figure>\n";
}

}  // namespace mlff::validate
