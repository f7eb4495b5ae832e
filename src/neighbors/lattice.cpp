// SPDX-License-Identifier: MIT
#include "neighbors/lattice.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace mlff {
namespace {

constexpr double kShortestRow = 1e-10;  // angstrom; shorter rows count as zero
constexpr double kLongestRow = 1e9;     // angstrom; beyond this, positions are too coarse for distances
constexpr double kFlattest = 1e-6;      // volume of the cell / product of its edges

double dot(const Vec3& a, const Vec3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
double length(const Vec3& a) { return std::hypot(a[0], a[1], a[2]); }
Vec3 scaled(const Vec3& a, double factor) { return {a[0] * factor, a[1] * factor, a[2] * factor}; }
Vec3 unit(const Vec3& a) { return scaled(a, 1 / length(a)); }

Vec3 cross(const Vec3& a, const Vec3& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

// A unit vector perpendicular to the unit vector `axis`, as close as possible to a coordinate axis.
Vec3 perpendicular(const Vec3& axis) {
    const auto smaller = [](double a, double b) { return std::abs(a) < std::abs(b); };
    const auto k = static_cast<size_t>(std::min_element(axis.begin(), axis.end(), smaller) - axis.begin());
    Vec3 result = scaled(axis, -axis[k]);
    result[k] += 1;
    return unit(result);
}

void check_row(const SystemView& system, size_t k) {
    const Vec3& row = system.cell[k];
    for (const double value : row)
        if (!std::isfinite(value)) fail(Status::system, "lattice vector ", k, " of the cell is not finite");
    if (!system.periodic[k]) return;
    if (length(row) < kShortestRow)
        fail(Status::system, "direction ", k, " is periodic, but lattice vector ", k, " of the cell is zero");
    if (length(row) > kLongestRow)
        fail(Status::system, "lattice vector ", k, " of the cell is ", length(row), " angstrom long, the limit is ",
             kLongestRow);
}

// Replaces missing rows by unit vectors perpendicular to the given rows and to each other.
Mat3 complete_rows(Mat3 rows, const std::array<bool, 3>& given) {
    const int count = int{given[0]} + int{given[1]} + int{given[2]};
    if (count == 0) return {Vec3{1, 0, 0}, Vec3{0, 1, 0}, Vec3{0, 0, 1}};
    for (size_t k = 0; k < 3; ++k) {
        Vec3& next = rows[(k + 1) % 3];
        Vec3& last = rows[(k + 2) % 3];
        if (count == 1 && given[k]) {
            const Vec3 axis = unit(rows[k]);
            next = perpendicular(axis);
            last = cross(axis, next);
        }
        if (count == 2 && !given[k]) {
            const Vec3 normal = cross(unit(next), unit(last));
            if (length(normal) < kFlattest) fail(Status::system, "two lattice vectors of the cell are nearly parallel");
            rows[k] = unit(normal);
        }
    }
    return rows;
}

// Checked on unit vectors, so that very long or very short edges do not hide a flat cell.
void check_not_flat(const Mat3& rows) {
    const double share = std::abs(dot(cross(unit(rows[0]), unit(rows[1])), unit(rows[2])));
    if (!(share > kFlattest))
        fail(Status::system, "the cell is flat: its volume is ", share, " of the product of its edge lengths");
}

}  // namespace

Lattice make_lattice(const SystemView& system) {
    for (size_t k = 0; k < 3; ++k) check_row(system, k);
    Lattice lattice;
    lattice.periodic = system.periodic;
    lattice.vectors = complete_rows(system.cell, system.periodic);
    check_not_flat(lattice.vectors);
    for (size_t k = 0; k < 3; ++k) {
        const Vec3 normal = cross(lattice.vectors[(k + 1) % 3], lattice.vectors[(k + 2) % 3]);
        const double determinant = dot(normal, lattice.vectors[k]);
        for (size_t axis = 0; axis < 3; ++axis) lattice.inverse[axis][k] = normal[axis] / determinant;
        lattice.height[k] = std::abs(determinant) / length(normal);
        lattice.volume = std::abs(determinant);
    }
    return lattice;
}

bool stress_volume_needs_positions(const SystemView& system) {
    return std::any_of(system.cell.begin(), system.cell.end(),
                       [](const Vec3& row) { return length(row) < kShortestRow; });
}

double stress_volume(const SystemView& system, double cutoff) {
    std::array<bool, 3> given;
    for (size_t k = 0; k < 3; ++k) {
        check_row(system, k);
        given[k] = length(system.cell[k]) >= kShortestRow;
    }
    const Mat3 rows = complete_rows(system.cell, given);
    check_not_flat(rows);
    double volume = std::abs(dot(cross(rows[0], rows[1]), rows[2]));
    for (size_t k = 0; k < 3; ++k) {
        if (given[k]) continue;
        double lowest = 0;
        double highest = 0;
        for (int64_t atom = 0; atom < system.atom_count; ++atom) {
            const double* x = system.positions + 3 * atom;
            const double along = dot({x[0], x[1], x[2]}, rows[k]);
            lowest = atom == 0 ? along : std::min(lowest, along);
            highest = atom == 0 ? along : std::max(highest, along);
        }
        volume *= (highest - lowest) + 2 * cutoff + 1;
    }
    return volume;
}

}  // namespace mlff
