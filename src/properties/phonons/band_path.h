// SPDX-License-Identifier: MIT
// A path through the Brillouin zone, along lines between points with labels.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/phonons/space_group.h"

namespace mlff::phonons {

struct LabelledPoint {
    std::string label;  // "G" is Gamma
    Vec3 wave_vector{};
};

using BandPath = std::vector<std::vector<LabelledPoint>>;  // pieces that do not continue each other

// Points of a lattice with names, and the usual path among them, in reciprocal vectors of the standard primitive cell.
struct StandardPath {
    std::string lattice;  // "cF"; "" if it is not in the table
    std::vector<LabelledPoint> points;
    BandPath path;
};

// The points and paths of Hinuma et al., Comput. Mater. Sci. 128, 140 (2017) for the lattices cP, cF, cI, tP, tI, hP,
// hR and oP. For others and without a space group: the middles of the faces along the reciprocal vectors and a corner.
StandardPath standard_path(const std::optional<SpaceGroup>& group);

// The same wave vectors in reciprocal vectors of another cell.
StandardPath in_cell(const StandardPath& path, const Mat3& from_lattice, const Mat3& to_lattice);

// "G X|U=5/8,1/4,5/8 G": pieces between |, labels that `known` has or that come with coordinates. Throws
// Error{argument} for labels that are unknown, and for a path without a line.
BandPath parse_path(std::string_view text, const std::vector<LabelledPoint>& known);

// Points of a path, `count` of each line with its ends.
struct BandPoint {
    Vec3 wave_vector{};
    double distance = 0;  // along the path, 1/angstrom (with 2 pi)
    std::string label;    // "" inside a line
    bool begins_line = false;
    bool begins_piece = false;
};
std::vector<BandPoint> sampled_path(const BandPath& path, const Mat3& lattice, int64_t count);

}  // namespace mlff::phonons
