// SPDX-License-Identifier: MIT
#include "tools/validate/structure_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "core/elements.h"
#include "core/error.h"
#include "neighbors/lattice.h"
#include "neighbors/neighbor_list.h"
#include "tools/validate/check_names.h"
#include "tools/validate/statistics.h"

namespace mlff::validate {
namespace {

constexpr double kBondFactor = 1.25;

// Elements without a known radius use that of the heaviest element that has one.
double radius(int32_t atomic_number) {
    const double known = covalent_radius(atomic_number);
    return known > 0 ? known : 1.7;
}
double contact(int32_t first, int32_t second) { return radius(first) + radius(second); }

std::string pair_name(const Particles& particles, int64_t first, int64_t second) {
    const auto name = [&](int64_t atom) {
        return concat(atom, " (", element_symbol(particles.atomic_numbers[static_cast<size_t>(atom)]), ")");
    };
    return concat("atoms ", name(first), " and ", name(second));
}

NeighborList half_list(double cutoff) {
    NeighborOptions options;
    options.cutoff = cutoff;
    options.half = true;
    return NeighborList(options);
}

double bond_length(const Bond& bond, const std::vector<double>& positions) {
    const double *a = &positions[3 * static_cast<size_t>(bond.first)],
                 *b = &positions[3 * static_cast<size_t>(bond.second)];
    return std::sqrt(squared_length(edge_vector(a, b, bond.shift)));
}

struct BondFindings {
    double mean_percent = 0, stretch_percent = 0;  // of the initial length; absolute values
    std::string mean_note, stretch_note;
};

BondFindings follow_bonds(const Particles& start, const std::vector<Bond>& bonds, std::span<const Snapshot> snapshots) {
    BondFindings found;
    for (const Bond& bond : bonds) {
        double sum = 0;
        for (const Snapshot& snapshot : snapshots) {
            const double length = bond_length(bond, snapshot.positions),
                         percent = 100 * std::abs(length / bond.length - 1);
            sum += length;
            if (percent <= found.stretch_percent) continue;
            found.stretch_percent = percent;
            found.stretch_note = concat(pair_name(start, bond.first, bond.second), ": ", bond.length,
                                        " A at the start, ", length, " A in step ", snapshot.step);
        }
        const double mean = sum / static_cast<double>(snapshots.size()),
                     percent = 100 * std::abs(mean / bond.length - 1);
        if (percent <= found.mean_percent) continue;
        found.mean_percent = percent;
        found.mean_note = concat(pair_name(start, bond.first, bond.second), ": ", bond.length, " A at the start, ",
                                 mean, " A in the mean");
    }
    return found;
}

}  // namespace

std::vector<Bond> find_bonds(const SystemView& system) {
    double reach = 0;
    for (int64_t atom = 0; atom < system.atom_count; ++atom)
        reach = std::max(reach, 2 * kBondFactor * radius(system.atomic_numbers[atom]));
    NeighborList list = half_list(reach);
    ThreadTeam team(1);
    list.update(system, team);
    const Edges& edges = list.edges();
    std::vector<Bond> bonds;
    for (int64_t atom = 0; atom < edges.atom_count; ++atom)
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            const int64_t other = edges.sender[edge];
            const int32_t* shift = edges.shift + 3 * edge;
            if (edges.distance[edge] < kBondFactor * contact(system.atomic_numbers[atom], system.atomic_numbers[other]))
                bonds.push_back(
                    {atom, other, shift_vector(system.cell, shift[0], shift[1], shift[2]), edges.distance[edge]});
        }
    return bonds;
}

std::string pair_label(const std::array<int32_t, 2>& elements) {
    return concat(element_symbol(elements[0]), "-", element_symbol(elements[1]));
}

Distances measure_distances(const Particles& particles, std::span<const Snapshot> snapshots) {
    Distances distances;
    distances.total.assign(kHistogramBins, 0.0);
    distances.snapshot_count = snapshots.size();
    distances.closest_contact = INFINITY;
    std::map<std::array<int32_t, 2>, std::vector<double>> counts;
    NeighborList list = half_list(kHistogramReach);
    ThreadTeam team(1);
    SystemView system = particles.view();
    for (const Snapshot& snapshot : snapshots) {
        system.positions = snapshot.positions.data();
        list.update(system, team);
        const Edges& edges = list.edges();
        for (int64_t atom = 0; atom < edges.atom_count; ++atom)
            for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
                const int64_t other = edges.sender[edge];
                const int32_t z = system.atomic_numbers[atom], other_z = system.atomic_numbers[other];
                const double distance = edges.distance[edge];
                std::vector<double>& histogram = counts[{std::min(z, other_z), std::max(z, other_z)}];
                histogram.resize(kHistogramBins);
                const size_t bin = std::min(kHistogramBins - 1, static_cast<size_t>(distance / kHistogramBin));
                histogram[bin] += 1;
                distances.total[bin] += 1;
                const double ratio = distance / contact(z, other_z);
                if (ratio >= distances.closest_contact) continue;
                distances.closest_contact = ratio;
                distances.closest_pair =
                    concat(pair_name(particles, atom, other), ", ", distance, " A apart in step ", snapshot.step);
            }
    }
    for (auto& [elements, histogram] : counts) distances.histograms.push_back({elements, std::move(histogram)});
    return distances;
}

std::vector<double> radial_distribution(const PairHistogram& histogram, const Distances& distances,
                                        const Particles& particles) {
    const SystemView system = particles.view();
    const auto count = [&](int32_t z) {
        return static_cast<double>(std::count(particles.atomic_numbers.begin(), particles.atomic_numbers.end(), z));
    };
    const auto [first, second] = histogram.elements;
    const bool is_bulk = system.periodic[0] && system.periodic[1] && system.periodic[2];
    const double pairs = first == second ? 0.5 * count(first) * count(second) : count(first) * count(second);
    std::vector<double> values(histogram.counts.size());
    for (size_t bin = 0; bin < values.size(); ++bin) {
        const double low = kHistogramBin * static_cast<double>(bin), high = low + kHistogramBin;
        const double shell = 4 * std::numbers::pi / 3 * (high * high * high - low * low * low);
        const double expected = is_bulk ? pairs * shell / make_lattice(system).volume : kHistogramBin;
        values[bin] = histogram.counts[bin] / (expected * static_cast<double>(distances.snapshot_count));
    }
    return values;
}

std::vector<Check> check_structure(const Particles& start, std::span<const Snapshot> snapshots,
                                   const Distances& in_bath, const Distances& free, const Thresholds& thresholds) {
    std::vector<Check> checks;
    if (snapshots.empty()) return checks;
    const std::vector<Bond> bonds = find_bonds(start.view());
    if (!bonds.empty()) {
        const BondFindings found = follow_bonds(start, bonds, snapshots);
        checks.push_back(
            at_most(kBondMeanCheck, found.mean_percent, thresholds.bond_mean_percent, "%", found.mean_note));
        checks.push_back(at_most(kBondStretchCheck, found.stretch_percent, thresholds.bond_stretch_percent, "%",
                                 found.stretch_note));
    }
    const Distances& closer = free.closest_contact < in_bath.closest_contact ? free : in_bath;
    checks.push_back({kContactCheck, closer.closest_contact, "of the sum of covalent radii", thresholds.closest_contact,
                      INFINITY, 0, closer.closest_pair});
    if (in_bath.snapshot_count > 0 && free.snapshot_count > 0)
        checks.push_back(at_most(kFreeDistancesCheck, histogram_shift(in_bath.total, free.total, kHistogramBin),
                                 thresholds.rdf_shift_angstrom, "A"));
    return checks;
}

}  // namespace mlff::validate
