// SPDX-License-Identifier: MIT
#include "neighbors/stencil.h"

#include <cmath>

namespace mlff {
namespace {

struct Interval {
    double low, high;
    double distance_to_zero() const { return std::max({low, -high, 0.0}); }
};
Interval operator+(const Interval& a, const Interval& b) { return {a.low + b.low, a.high + b.high}; }
Interval operator*(double factor, const Interval& a) {
    return {std::min(factor * a.low, factor * a.high), std::max(factor * a.low, factor * a.high)};
}

// The lattice vectors rotated so that the first points along x and the second lies in the xy plane.
Mat3 triangular(const Mat3& rows) {
    Mat3 axes = rows;
    Mat3 result{};
    for (size_t k = 0; k < 3; ++k) {
        for (size_t l = 0; l < k; ++l) {
            result[k][l] = rows[k][0] * axes[l][0] + rows[k][1] * axes[l][1] + rows[k][2] * axes[l][2];
            for (size_t axis = 0; axis < 3; ++axis) axes[k][axis] -= result[k][l] * axes[l][axis];
        }
        result[k][k] = std::hypot(axes[k][0], axes[k][1], axes[k][2]);
        for (double& component : axes[k]) component /= result[k][k];
    }
    return result;
}

// An upper bound on the distance of two atoms in the same bin along a direction, in units of bins. The last term covers
// the rounding of the stencil itself.
double bin_diameter(const CellGrid& grid, size_t direction) {
    return 1 + 2 * grid.bin_margin / (grid.bin_width[direction] * grid.lattice.height[direction]) + 1e-9;
}

// The range of separations, in fractional coordinates, of atoms whose bins are `offset` apart along a direction. In
// non-periodic directions only the near end is right; only that end is used, because such directions are perpendicular
// to the others.
Interval separation(const CellGrid& grid, size_t direction, int offset) {
    const double diameter = bin_diameter(grid, direction);
    return {(offset - diameter) * grid.bin_width[direction], (offset + diameter) * grid.bin_width[direction]};
}

int farthest_bin(const CellGrid& grid, size_t direction) {
    const double width = grid.bin_width[direction] * grid.lattice.height[direction];
    const double most = std::floor((grid.reach + grid.filter_margin) / width + bin_diameter(grid, direction));
    if (grid.lattice.periodic[direction]) return static_cast<int>(most);
    return static_cast<int>(std::min(most, grid.bin_count[direction] - 1.0));
}

}  // namespace

void make_stencil(const CellGrid& grid, std::vector<StencilRow>& stencil) {
    const Mat3 rows = triangular(grid.lattice.vectors);
    const double reach = grid.reach + grid.filter_margin;
    const double far0 = farthest_bin(grid, 0);
    const int far1 = farthest_bin(grid, 1);
    const int far2 = farthest_bin(grid, 2);
    stencil.clear();
    for (int offset2 = -far2; offset2 <= far2; ++offset2)
        for (int offset1 = -far1; offset1 <= far1; ++offset1) {
            const Interval along1 = separation(grid, 1, offset1);
            const Interval along2 = separation(grid, 2, offset2);
            const double z = (rows[2][2] * along2).distance_to_zero();
            const double y = (rows[1][1] * along1 + rows[2][1] * along2).distance_to_zero();
            const double rest = reach * reach - y * y - z * z;
            if (rest < 0) continue;
            const Interval x = rows[1][0] * along1 + rows[2][0] * along2;
            const double half = std::sqrt(rest);
            const double width = rows[0][0] * grid.bin_width[0];
            const double diameter = bin_diameter(grid, 0);
            const double lowest = std::max(std::ceil((-half - x.high) / width - diameter), -far0);
            const double highest = std::min(std::floor((half - x.low) / width + diameter), far0);
            stencil.push_back({offset1, offset2, static_cast<int>(lowest), static_cast<int>(highest)});
        }
}

}  // namespace mlff
