// SPDX-License-Identifier: MIT
// Compares results with those of an earlier run.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/bench/statistics.h"
#include "tools/validate/check.h"

namespace mlff::bench {

// One row of one run.
struct MeasuredTimes {
    SampleBlocks blocks;              // the best of a block counts: disturbances only make times longer
    double contention = 1;            // tools/bench/disturbance.h
    std::vector<double> probes = {};  // s; empty: not known
};

// The ratio of the new time to the old one: between `low` and `high`, given the spread between blocks and the other
// load on the machine.
struct Change {
    double ratio = 1;  // ratio of the best times
    double low = 1, high = 1;
    validate::Verdict verdict = validate::Verdict::undecided;  // failed: certainly more than `allowed`
};
// `allowed`: 0.05 means 5 % more. With fewer than kLeastBlocks the spread is unknown, and the comparison never fails.
inline constexpr size_t kLeastBlocks = 3;
Change compare_times(const MeasuredTimes& now, const MeasuredTimes& before, double allowed);

struct Comparison {
    std::string file;                      // the baseline's
    std::vector<std::string> regressions;  // what got worse, and by how much
    std::vector<std::string> undecided;    // what may have got worse: the measurement was too noisy
    std::vector<std::string> improvements;
    std::vector<std::string> notes;  // unmatched rows, different versions
    size_t compared = 0;             // rows in both
};

inline constexpr double kSlowdown = 0.05, kQuickSlowdown = 0.1;  // allowed slowdown
// A growing error is a regression before it reaches its limit: if it is ten times that of the baseline and more than a
// tenth of the limit.
inline constexpr double kErrorGrowth = 10, kErrorShare = 0.1;

// Both are documents of report_json(). Throws Error{format} if `baseline` (`name` in messages) is not such a document,
// or was measured with a different model, machine, device, precision or number of threads, or if only one of them is
// quick. Does not compare the rows.
void check_comparable(const nlohmann::json& now, const nlohmann::json& baseline, const std::string& name);

// "1 regression", "2 regressions, 3 undecided".
std::string counts_text(const Comparison& comparison);

// Calls check_comparable(), then compares row by row.
Comparison compare_with_baseline(const nlohmann::json& now, const nlohmann::json& baseline, const std::string& name);

}  // namespace mlff::bench
