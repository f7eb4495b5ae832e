// SPDX-License-Identifier: MIT
// The grid of bins for a neighbour search, chosen from the lattice and a survey of the atoms. The CPU and GPU lists use
// the same grid and the same functions, so they sort atoms identically.
//
// Bin numbers run fastest along direction 0: adjacent bins along direction 0 hold one contiguous run of sorted atoms.
// Atoms are wrapped into the cell in periodic directions; in other directions the outermost bins are open-ended.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/host_device.h"
#include "core/system_view.h"
#include "neighbors/lattice.h"

namespace mlff {

constexpr int kMostImages = 500;       // in one direction; image numbers are packed in 10 bits
constexpr double kFarthestAtom = 1e9;  // angstrom; beyond this, positions are too coarse for distances
constexpr double kMostWraps = 1e9;     // so that the difference of two wraps plus an image fits an int32

// An atom in the list. One record, because pairs need all of it and access atoms in scattered order.
struct Site {
    Vec3 position;                // as given, angstrom
    std::array<int32_t, 3> wrap;  // lattice vectors to subtract to move it into the cell
    int32_t atom;                 // original index
};

MLFF_HOST_DEVICE inline Vec3 fractional(const Lattice& lattice, const double* x) {
    Vec3 result;
    for (size_t k = 0; k < 3; ++k)
        result[k] = x[0] * lattice.inverse[0][k] + x[1] * lattice.inverse[1][k] + x[2] * lattice.inverse[2][k];
    return result;
}

// The result of one pass over the atoms. All but the two sums are independent of the order of the atoms.
struct AtomSurvey {
    int64_t refused = std::numeric_limits<int64_t>::max();  // the first atom with an invalid position
    double farthest = 0;                                    // largest coordinate, angstrom
    Vec3 most_wraps = {0, 0, 0};
    Vec3 lowest = {kNone, kNone, kNone};  // of the fractional coordinates
    Vec3 highest = {-kNone, -kNone, -kNone};
    Vec3 sum = {0, 0, 0};
    Vec3 sum_of_squares = {0, 0, 0};

    MLFF_HOST_DEVICE void add(const Lattice& axes, const double* position, int64_t atom) {
        const double distance = std::max(std::abs(position[0]), std::max(std::abs(position[1]), std::abs(position[2])));
        const double total = position[0] + position[1] + position[2];
        const Vec3 f = fractional(axes, position);
        bool usable = distance <= kFarthestAtom && total == total;  // NaN is not equal to itself
        for (size_t k = 0; k < 3; ++k) {
            const double wraps = axes.periodic[k] ? std::abs(std::floor(f[k])) : 0;
            usable = usable && wraps <= kMostWraps;
            most_wraps[k] = std::max(most_wraps[k], wraps);
            lowest[k] = std::min(lowest[k], f[k]);
            highest[k] = std::max(highest[k], f[k]);
            sum[k] += f[k];
            sum_of_squares[k] += f[k] * f[k];
        }
        farthest = std::max(farthest, distance);
        if (!usable) refused = std::min(refused, atom);
    }

    MLFF_HOST_DEVICE void merge(const AtomSurvey& other) {
        refused = std::min(refused, other.refused);
        farthest = std::max(farthest, other.farthest);
        for (size_t k = 0; k < 3; ++k) {
            most_wraps[k] = std::max(most_wraps[k], other.most_wraps[k]);
            lowest[k] = std::min(lowest[k], other.lowest[k]);
            highest[k] = std::max(highest[k], other.highest[k]);
            sum[k] += other.sum[k];
            sum_of_squares[k] += other.sum_of_squares[k];
        }
    }

private:
    static constexpr double kNone = std::numeric_limits<double>::max();
};

// An atom wrapped into the cell.
struct WrappedAtom {
    std::array<int32_t, 3> wrap;  // as in Site
    std::array<float, 3> place;   // relative to the middle of the grid, angstrom
};

struct CellGrid {
    Lattice lattice;
    double reach = 0;  // pairs up to this distance can be found
    std::array<int32_t, 3> bin_count{};
    Vec3 bin_width{};          // in fractional coordinates
    double bin_margin = 0;     // rounding can place an atom this far outside its bin, angstrom
    double filter_margin = 0;  // bound on |distance by WrappedAtom::place - distance by edge_vector|, angstrom
    Vec3 origin{};             // in fractional coordinates
    Vec3 length{};             // in fractional coordinates
    Vec3 middle{};             // angstrom
    double fewest_pairs = 0;   // there are at least so many pairs within the reach, each counted from both ends

    int64_t total_bins() const { return int64_t{bin_count[0]} * bin_count[1] * bin_count[2]; }

    // Bounds on the single-precision squared distance: a pair below the first is within the reach; a pair at or above
    // the second is beyond it.
    float surely_within() const;
    float surely_beyond() const;

    MLFF_HOST_DEVICE int32_t bin_of(const double* position) const {
        const Vec3 f = fractional(lattice, position);
        std::array<int32_t, 3> index;
        for (size_t k = 0; k < 3; ++k) {
            const double inside = lattice.periodic[k] ? f[k] - std::floor(f[k]) : f[k] - origin[k];
            index[k] = static_cast<int32_t>(std::clamp(inside / bin_width[k], 0.0, bin_count[k] - 1.0));
        }
        return (index[2] * bin_count[1] + index[1]) * bin_count[0] + index[0];
    }

    MLFF_HOST_DEVICE WrappedAtom wrap_atom(const double* position) const {
        const Vec3 f = fractional(lattice, position);
        WrappedAtom atom;
        Vec3 wrapped;
        for (size_t axis = 0; axis < 3; ++axis) wrapped[axis] = position[axis] - middle[axis];
        for (size_t k = 0; k < 3; ++k) {
            const double wraps = lattice.periodic[k] ? std::floor(f[k]) : 0;
            atom.wrap[k] = static_cast<int32_t>(wraps);
            for (size_t axis = 0; axis < 3; ++axis) wrapped[axis] -= wraps * lattice.vectors[k][axis];
        }
        for (size_t axis = 0; axis < 3; ++axis) atom.place[axis] = static_cast<float>(wrapped[axis]);
        return atom;
    }
};

// Throws Error if no list can hold this number of atoms.
void check_atom_count(int64_t atom_count);
// Throws Error{system} that says why the survey rejected an atom.
[[noreturn]] void refuse_atom(int64_t atom, const double* position);
// The same for the first atom of a system that is farther away than kFarthestAtom, if there is one.
void refuse_far_atoms(const SystemView& system);
// The most pairs of a list, each counted from both ends: far beyond any condensed matter, and enough for a few atoms in
// a tiny cell.
int64_t most_pairs(int64_t atom_count);
// Throws Error{system} that says that there are more.
[[noreturn]] void refuse_crowd(int64_t atom_count, double reach);
// Throws Error{system} if the reach needs too many images or gives too many neighbours. `is_one_bin`: all atoms are in
// one bin, so that a search looks at all pairs.
CellGrid choose_grid(const Lattice& lattice, const AtomSurvey& survey, int64_t atom_count, double search_reach,
                     bool is_one_bin = false);

}  // namespace mlff
