// SPDX-License-Identifier: MIT
// How much the pair distances of two runs of the same system differ: two models in the same bath.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "tools/validate/trajectory.h"

namespace mlff::validate {

// For one pair of elements. All lengths in angstrom.
struct PairDifference {
    std::array<int32_t, 2> elements{};
    // The mean distance by which pairs within 6 A must move to turn one distribution into the other: the area between
    // the cumulative distributions. A pair that only one run has within 6 A counts as one at 6 A in the other.
    double shift = 0;
    double uncertainty = 0;  // of `shift`, kStandardErrors standard errors; chance alone gives up to this much
    double change = 0;       // mean distance found minus mean distance expected
    double distance = 0;     // where most pairs would have to pass
};

// One entry for each pair of elements that occurs, in ascending order. The runs are cut into 20 blocks each, and the
// uncertainty comes from the scatter of the differences between corresponding blocks: runs with the same random numbers
// follow each other for a while, which makes it smaller. Throws Error{argument} below 20 snapshots.
std::vector<PairDifference> pair_differences(const Particles& particles, std::span<const Snapshot> found,
                                             std::span<const Snapshot> expected);

// The one that decides: the largest lower end shift - uncertainty among those that exceed the limit, else the largest
// upper end. `differences` must not be empty.
const PairDifference& worst_pair(std::span<const PairDifference> differences, double limit);

// "H-O; farther apart by 0.021 A in the mean, most near 1.85 A".
std::string difference_text(const PairDifference& difference);

}  // namespace mlff::validate
