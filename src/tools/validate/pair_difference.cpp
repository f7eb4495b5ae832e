// SPDX-License-Identifier: MIT
#include "tools/validate/pair_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "core/error.h"
#include "tools/validate/check.h"
#include "tools/validate/statistics.h"
#include "tools/validate/structure_check.h"

namespace mlff::validate {
namespace {

constexpr size_t kPairBlocks = 20;

using Elements = std::array<int32_t, 2>;
using Counts = std::vector<double>;  // [bin], pairs per snapshot

// Counts of one run by pair of elements: in each block, and in all of it.
struct PairCounts {
    std::vector<Counts> blocks = std::vector<Counts>(kPairBlocks, Counts(kHistogramBins, 0.0));
    Counts all = Counts(kHistogramBins, 0.0);
};
using CountsByPair = std::map<Elements, PairCounts>;

CountsByPair count_pairs(const Particles& particles, std::span<const Snapshot> snapshots) {
    CountsByPair counts;
    for (size_t block = 0; block < kPairBlocks; ++block) {
        const size_t begin = block * snapshots.size() / kPairBlocks, end = (block + 1) * snapshots.size() / kPairBlocks;
        const Distances distances = measure_distances(particles, snapshots.subspan(begin, end - begin));
        for (const PairHistogram& histogram : distances.histograms) {
            PairCounts& of_pair = counts[histogram.elements];
            for (size_t bin = 0; bin < kHistogramBins; ++bin) {
                of_pair.blocks[block][bin] = histogram.counts[bin] / static_cast<double>(end - begin);
                of_pair.all[bin] += histogram.counts[bin] / static_cast<double>(snapshots.size());
            }
        }
    }
    return counts;
}

// The cumulative distribution of `found` minus that of `expected`; both are divided by `pair_count`.
Counts cumulative_difference(const Counts& found, const Counts& expected, double pair_count) {
    Counts differences;
    double sum = 0;
    for (size_t bin = 0; bin < kHistogramBins; ++bin)
        differences.push_back(sum += (found[bin] - expected[bin]) / pair_count);
    return differences;
}

double sum_of(const Counts& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// The area between the curves is off by at most the area of their errors: one standard error of the differences, summed
// over the distances.
double area_of_errors(const std::vector<Counts>& differences) {
    const auto blocks = static_cast<double>(kPairBlocks);
    double area = 0;
    for (size_t bin = 0; bin < kHistogramBins; ++bin) {
        double mean = 0, squares = 0;
        for (const Counts& block : differences) mean += block[bin] / blocks;
        for (const Counts& block : differences) squares += (block[bin] - mean) * (block[bin] - mean);
        area += kHistogramBin * std::sqrt(squares / (blocks * (blocks - 1)));
    }
    return area;
}

PairDifference compare(const Elements& elements, const PairCounts& found, const PairCounts& expected) {
    PairDifference result{elements};
    const double pair_count = std::max(sum_of(found.all), sum_of(expected.all));
    const Counts difference = cumulative_difference(found.all, expected.all, pair_count);
    double largest = 0;
    for (size_t bin = 0; bin < kHistogramBins; ++bin) {
        result.shift += kHistogramBin * std::abs(difference[bin]);
        result.change -= kHistogramBin * difference[bin];
        if (std::abs(difference[bin]) <= largest) continue;
        largest = std::abs(difference[bin]);
        result.distance = kHistogramBin * static_cast<double>(bin + 1);
    }
    std::vector<Counts> differences;
    std::vector<double> areas;
    for (size_t block = 0; block < kPairBlocks; ++block) {
        differences.push_back(cumulative_difference(found.blocks[block], expected.blocks[block], pair_count));
        areas.push_back(sum_of(differences.back()));
    }
    result.uncertainty = kStandardErrors * std::sqrt(correlated_mean(areas).inefficiency) * area_of_errors(differences);
    return result;
}

}  // namespace

std::vector<PairDifference> pair_differences(const Particles& particles, std::span<const Snapshot> found,
                                             std::span<const Snapshot> expected) {
    if (std::min(found.size(), expected.size()) < kPairBlocks)
        fail(Status::argument, "pair distances are compared over at least ", kPairBlocks, " snapshots, found ",
             std::min(found.size(), expected.size()));
    CountsByPair first = count_pairs(particles, found), second = count_pairs(particles, expected);
    for (const auto& [elements, counts] : second) first[elements];  // a pair that only one of them has
    std::vector<PairDifference> differences;
    for (const auto& [elements, counts] : first) differences.push_back(compare(elements, counts, second[elements]));
    return differences;
}

const PairDifference& worst_pair(std::span<const PairDifference> differences, double limit) {
    const auto is_better = [&](const PairDifference& one, const PairDifference& other) {
        const double one_low = one.shift - one.uncertainty, other_low = other.shift - other.uncertainty;
        if (std::max(one_low, other_low) > limit) return one_low < other_low;
        return one.shift + one.uncertainty < other.shift + other.uncertainty;
    };
    return *std::max_element(differences.begin(), differences.end(), is_better);
}

std::string difference_text(const PairDifference& difference) {
    const std::string pair = pair_label(difference.elements);
    if (difference.shift == 0) return pair + "; all distances are the same";
    char text[96];
    std::snprintf(text, sizeof text, "; %s by %.2g A in the mean, most near %.2f A",
                  difference.change < 0 ? "closer" : "farther apart", std::abs(difference.change), difference.distance);
    return pair + text;
}

}  // namespace mlff::validate
