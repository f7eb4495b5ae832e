// SPDX-License-Identifier: MIT
#include "properties/phonons/band_path.h"

#include <charconv>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace mlff::phonons {
namespace {

// Points and path of a lattice as text, in the order in which they are parsed: the same grammar as for users.
struct TableEntry {
    const char* lattice;
    const char* points;
    const char* path;
};

// Lattices without parameters.
constexpr TableEntry kTable[] = {
    {"cP", "G=0,0,0 R=1/2,1/2,1/2 M=1/2,1/2,0 X=0,1/2,0", "G X M G R X|R M"},
    {"cF", "G=0,0,0 X=1/2,0,1/2 L=1/2,1/2,1/2 W=1/2,1/4,3/4 K=3/8,3/8,3/4 U=5/8,1/4,5/8", "G X U|K G L W X"},
    {"cI", "G=0,0,0 H=1/2,-1/2,1/2 P=1/4,1/4,1/4 N=0,0,1/2", "G H N G P H|P N"},
    {"tP", "G=0,0,0 Z=0,0,1/2 M=1/2,1/2,0 A=1/2,1/2,1/2 R=0,1/2,1/2 X=0,1/2,0", "G X M G Z R A Z|X R|M A"},
    {"hP", "G=0,0,0 A=0,0,1/2 K=1/3,1/3,0 H=1/3,1/3,1/2 M=1/2,0,0 L=1/2,0,1/2", "G M K G A L H A|L M|H K"},
    {"oP", "G=0,0,0 X=1/2,0,0 Z=0,0,1/2 U=1/2,0,1/2 Y=0,1/2,0 S=1/2,1/2,0 T=0,1/2,1/2 R=1/2,1/2,1/2",
     "G X S Y G Z U R T Z|X U|Y T|S R"},
    {"", "G=0,0,0 X=1/2,0,0 Y=0,1/2,0 Z=0,0,1/2 R=1/2,1/2,1/2", "X G Y|Z G R"},
};

std::string lattice_of(const SpaceGroup& group) {
    const int number = group.number;
    const char system = number <= 2     ? 'a'
                        : number <= 15  ? 'm'
                        : number <= 74  ? 'o'
                        : number <= 142 ? 't'
                        : number <= 194 ? 'h'
                                        : 'c';
    return {system, group.symbol.front()};
}

double length_of(const Vec3& vector) { return std::hypot(vector[0], vector[1], vector[2]); }

StandardPath body_centred_tetragonal(double a, double c) {
    StandardPath result;
    result.lattice = "tI";
    std::vector<LabelledPoint>& points = result.points;
    points = {{"G", {0, 0, 0}}, {"X", {0, 0, 0.5}}, {"P", {0.25, 0.25, 0.25}}, {"N", {0, 0.5, 0}}};
    if (c <= a) {
        const double eta = (1 + c * c / (a * a)) / 4;
        points.push_back({"M", {-0.5, 0.5, 0.5}});
        points.push_back({"Z", {eta, eta, -eta}});
        points.push_back({"Z_0", {-eta, 1 - eta, eta}});
        result.path = parse_path("G X M G Z|Z_0 M|X P N G", points);
    } else {
        const double eta = (1 + a * a / (c * c)) / 4, zeta = a * a / (2 * c * c);
        points.push_back({"M", {0.5, 0.5, -0.5}});
        points.push_back({"S_0", {-eta, eta, eta}});
        points.push_back({"S", {eta, 1 - eta, -eta}});
        points.push_back({"R", {-zeta, zeta, 0.5}});
        points.push_back({"G_0", {0.5, 0.5, -zeta}});  // "G" in the source, where Gamma is "GAMMA"
        result.path = parse_path("G X P N G M S|S_0 G|X R|G_0 M", points);
    }
    return result;
}

StandardPath rhombohedral(double a, double c) {
    StandardPath result;
    result.lattice = "hR";
    std::vector<LabelledPoint>& points = result.points;
    points = {{"G", {0, 0, 0}}, {"L", {0.5, 0, 0}}};
    if (std::sqrt(3.0) * a <= std::sqrt(2.0) * c) {
        const double delta = a * a / (4 * c * c), eta = 5.0 / 6 - 2 * delta, nu = 1.0 / 3 + delta;
        points.push_back({"T", {0.5, 0.5, 0.5}});
        points.push_back({"F", {0.5, 0, 0.5}});
        points.push_back({"S_0", {nu, -nu, 0}});
        points.push_back({"S_2", {1 - nu, 0, nu}});
        points.push_back({"H_0", {0.5, -1 + eta, 1 - eta}});
        points.push_back({"H_2", {eta, 1 - eta, 0.5}});
        result.path = parse_path("G T H_2|H_0 L G S_0|S_2 F G", points);
    } else {
        const double zeta = 1.0 / 6 - c * c / (9 * a * a), eta = 0.5 - 2 * zeta;
        points.push_back({"T", {0.5, -0.5, 0.5}});
        points.push_back({"F", {0.5, -0.5, 0}});
        points.push_back({"P_0", {eta, -1 + eta, eta}});
        points.push_back({"P_2", {eta, eta, eta}});
        result.path = parse_path("G L T P_0|P_2 G F", points);
    }
    return result;
}

// "-1/2" or "0.375"
std::optional<double> parse_fraction(std::string_view text) {
    const auto number = [](std::string_view part) -> std::optional<double> {
        double value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc() || end != part.data() + part.size() || !std::isfinite(value)) return {};
        return value;
    };
    const size_t slash = text.find('/');
    if (slash == std::string_view::npos) return number(text);
    const auto above = number(text.substr(0, slash)), below = number(text.substr(slash + 1));
    if (!above || !below || *below == 0) return {};
    return *above / *below;
}

LabelledPoint parse_point(std::string_view word, const std::vector<LabelledPoint>& known) {
    const size_t equals = word.find('=');
    LabelledPoint point;
    point.label = word.substr(0, equals);
    if (equals != std::string_view::npos) {
        std::string_view rest = word.substr(equals + 1);
        for (size_t k = 0; k < 3; ++k) {
            const size_t comma = k < 2 ? rest.find(',') : rest.size();
            const auto value = comma > rest.size() ? std::nullopt : parse_fraction(rest.substr(0, comma));
            if (!value || point.label.empty() || std::abs(*value) > 1e3)
                fail(Status::argument, "the path has '", word, "', expected LABEL or LABEL=a,b,c with three fractions");
            point.wave_vector[k] = *value;
            if (k < 2) rest.remove_prefix(comma + 1);
        }
        return point;
    }
    std::string labels;
    for (const LabelledPoint& candidate : known) {
        if (candidate.label == point.label) return candidate;
        labels += (labels.empty() ? "" : " ") + candidate.label;
    }
    fail(Status::argument, "the path has the point '", word, "', which this lattice does not; expected one of ", labels,
         " or LABEL=a,b,c");
}

}  // namespace

StandardPath standard_path(const std::optional<SpaceGroup>& group) {
    std::string lattice;
    if (group) {
        lattice = lattice_of(*group);
        const double a = length_of(group->conventional_lattice[0]), c = length_of(group->conventional_lattice[2]);
        if (lattice == "tI") return body_centred_tetragonal(a, c);
        if (lattice == "hR") return rhombohedral(a, c);
    }
    const TableEntry* entry = std::begin(kTable);
    while (*entry->lattice && entry->lattice != lattice) ++entry;
    StandardPath result;
    result.lattice = entry->lattice;
    for (const std::vector<LabelledPoint>& piece : parse_path(entry->points, {}))
        result.points.insert(result.points.end(), piece.begin(), piece.end());
    result.path = parse_path(entry->path, result.points);
    return result;
}

StandardPath in_cell(const StandardPath& path, const Mat3& from_lattice, const Mat3& to_lattice) {
    // A wave vector k = q . (reciprocal vectors of `from`); its components in the other cell are k . a_i.
    const Mat3 change = product(to_lattice, inverse(from_lattice));
    const auto changed = [&](LabelledPoint point) {
        Vec3 result{};
        for (size_t i = 0; i < 3; ++i)
            for (size_t k = 0; k < 3; ++k) result[i] += change[i][k] * point.wave_vector[k];
        point.wave_vector = result;
        return point;
    };
    StandardPath result = path;
    for (LabelledPoint& point : result.points) point = changed(point);
    for (std::vector<LabelledPoint>& piece : result.path)
        for (LabelledPoint& point : piece) point = changed(point);
    return result;
}

BandPath parse_path(std::string_view text, const std::vector<LabelledPoint>& known) {
    BandPath path;
    while (true) {
        const size_t bar = text.find('|');
        std::string_view piece = text.substr(0, bar);
        std::vector<LabelledPoint> points;
        while (true) {
            const size_t begin = piece.find_first_not_of(" \t");
            if (begin == std::string_view::npos) break;
            piece.remove_prefix(begin);
            const size_t end = std::min(piece.find_first_of(" \t"), piece.size());
            points.push_back(parse_point(piece.substr(0, end), known));
            piece.remove_prefix(end);
        }
        if (points.size() < 2)
            fail(Status::argument, "a piece of the path has ", points.size(), " points, expected two or more");
        path.push_back(std::move(points));
        if (bar == std::string_view::npos) return path;
        text.remove_prefix(bar + 1);
    }
}

std::vector<BandPoint> sampled_path(const BandPath& path, const Mat3& lattice, int64_t count) {
    const Mat3 reciprocal = transposed(inverse(lattice));
    std::vector<BandPoint> points;
    double distance = 0;
    for (const std::vector<LabelledPoint>& piece : path)
        for (size_t line = 1; line < piece.size(); ++line) {
            const LabelledPoint &from = piece[line - 1], &to = piece[line];
            Vec3 difference{};
            for (size_t i = 0; i < 3; ++i) difference[i] = to.wave_vector[i] - from.wave_vector[i];
            const double length = 2 * std::numbers::pi * length_of(to_cartesian(reciprocal, difference));
            for (int64_t k = 0; k < count; ++k) {
                const double part = static_cast<double>(k) / static_cast<double>(count - 1);
                BandPoint point;
                for (size_t i = 0; i < 3; ++i) point.wave_vector[i] = from.wave_vector[i] + part * difference[i];
                point.distance = distance + part * length;
                if (k == 0) point.label = from.label;
                if (k == count - 1) point.label = to.label;
                point.begins_line = k == 0;
                point.begins_piece = k == 0 && line == 1;
                points.push_back(point);
            }
            distance += length;
        }
    return points;
}

}  // namespace mlff::phonons
