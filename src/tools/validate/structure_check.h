// SPDX-License-Identifier: MIT
// Checks that the structure is kept: bonds, closest contacts, and the distances of all pairs.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/system_view.h"
#include "tools/validate/check.h"
#include "tools/validate/thresholds.h"
#include "tools/validate/trajectory.h"

namespace mlff::validate {

struct Bond {
    int64_t first = 0, second = 0;
    Vec3 shift{};       // angstrom, added to the second atom
    double length = 0;  // angstrom, at the start
};

// Pairs within 1.25 times the sum of their covalent radii.
std::vector<Bond> find_bonds(const SystemView& system);

// Distances of all pairs up to 6 A.
inline constexpr double kHistogramReach = 6, kHistogramBin = 0.05;  // angstrom
inline constexpr size_t kHistogramBins = 120;
struct PairHistogram {
    std::array<int32_t, 2> elements{};
    std::vector<double> counts;  // [bin], each pair once, summed over the snapshots
};
struct Distances {
    std::vector<PairHistogram> histograms;  // one per pair of elements that occurs
    std::vector<double> total;              // [bin]
    size_t snapshot_count = 0;
    double closest_contact = 0;  // smallest distance / sum of the covalent radii; infinite if no atoms are close
    std::string closest_pair;
};
std::string pair_label(const std::array<int32_t, 2>& elements);  // "H-O"
Distances measure_distances(const Particles& particles, std::span<const Snapshot> snapshots);

// g(r) if the system is periodic in all directions, else pairs per angstrom.
std::vector<double> radial_distribution(const PairHistogram& histogram, const Distances& distances,
                                        const Particles& particles);

// `start` is the structure as given, before relaxation.
std::vector<Check> check_structure(const Particles& start, std::span<const Snapshot> snapshots,
                                   const Distances& in_bath, const Distances& free, const Thresholds& thresholds);

}  // namespace mlff::validate
