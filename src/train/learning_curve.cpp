// SPDX-License-Identifier: MIT
#include "train/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "core/output_file.h"

namespace mlff::train {
namespace {

struct Point {
    double x, y;
};
struct Curve {
    std::string name, color;
    std::vector<Point> points;
    bool has_marks;
};

constexpr double kWidth = 760, kHeight = 420, kLeft = 70, kRight = 200, kTop = 20, kBottom = 45;

std::string picture(const std::vector<Curve>& curves) {
    double last = 1, lowest = std::numeric_limits<double>::max(), highest = 0;
    for (const Curve& curve : curves)
        for (const Point& point : curve.points) {
            last = std::max(last, point.x);
            lowest = std::min(lowest, point.y);
            highest = std::max(highest, point.y);
        }
    if (highest <= 0) lowest = highest = 1;
    const int first_decade = static_cast<int>(std::floor(std::log10(lowest))),
              end_decade = static_cast<int>(std::floor(std::log10(highest))) + 1;
    const auto x_of = [&](double x) { return kLeft + x / last * (kWidth - kLeft - kRight); };
    const auto y_of = [&](double y) {
        return kHeight - kBottom -
               (std::log10(y) - first_decade) / (end_decade - first_decade) * (kHeight - kTop - kBottom);
    };
    std::ostringstream svg;
    svg << std::fixed << std::setprecision(1);
    svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << kWidth << " " << kHeight
        << "\" font-family=\"sans-serif\" font-size=\"12\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    for (int decade = first_decade; decade <= end_decade; ++decade) {
        const double y = y_of(std::pow(10.0, decade));
        svg << "<line x1=\"" << kLeft << "\" x2=\"" << kWidth - kRight << "\" y1=\"" << y << "\" y2=\"" << y
            << "\" stroke=\"#ddd\"/><text x=\"" << kLeft - 8 << "\" y=\"" << y + 4 << "\" text-anchor=\"end\">1e"
            << decade << "</text>\n";
    }
    for (int tick = 0; tick <= 4; ++tick) {
        const double step = last * tick / 4;
        svg << "<text x=\"" << x_of(step) << "\" y=\"" << kHeight - kBottom + 18 << "\" text-anchor=\"middle\">"
            << static_cast<int64_t>(step) << "</text>\n";
    }
    svg << "<text x=\"" << (kLeft + kWidth - kRight) / 2 << "\" y=\"" << kHeight - 8
        << "\" text-anchor=\"middle\">step</text>\n";
    double legend = kTop + 12;
    for (const Curve& curve : curves) {
        svg << "<polyline fill=\"none\" stroke=\"" << curve.color << "\" stroke-width=\"1.5\" points=\"";
        for (const Point& point : curve.points) svg << x_of(point.x) << "," << y_of(point.y) << " ";
        svg << "\"/>\n";
        if (curve.has_marks)
            for (const Point& point : curve.points)
                svg << "<circle cx=\"" << x_of(point.x) << "\" cy=\"" << y_of(point.y) << "\" r=\"2.5\" fill=\""
                    << curve.color << "\"/>\n";
        svg << "<rect x=\"" << kWidth - kRight + 12 << "\" y=\"" << legend - 9
            << "\" width=\"10\" height=\"10\" fill=\"" << curve.color << "\"/><text x=\"" << kWidth - kRight + 28
            << "\" y=\"" << legend << "\">" << curve.name << "</text>\n";
        legend += 20;
    }
    svg << "</svg>\n";
    return svg.str();
}

}  // namespace

void write_learning_curve(const std::string& path, const std::vector<TrainingRow>& training,
                          const std::vector<ValidationRow>& validation) {
    std::vector<Curve> curves = {{"training loss", "#999999", {}, false},
                                 {"valid energy MAE, meV/atom", "#1f77b4", {}, true},
                                 {"valid force MAE, meV/A", "#d62728", {}, true}};
    const auto add = [](Curve& curve, int64_t step, double value) {
        if (value > 0 && std::isfinite(value)) curve.points.push_back({static_cast<double>(step), value});
    };
    const size_t stride = std::max<size_t>(1, training.size() / 500);
    for (size_t i = 0; i < training.size(); i += stride) add(curves[0], training[i].step, training[i].loss);
    for (const ValidationRow& row : validation) {
        add(curves[1], row.step, 1000 * row.energy_mae);
        add(curves[2], row.step, 1000 * row.force_mae);
    }
    const std::string svg = picture(curves);
    OutputFile file(path);
    file.write(svg.data(), svg.size());
    file.commit();
}

}  // namespace mlff::train
