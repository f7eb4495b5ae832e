// SPDX-License-Identifier: MIT
// Results beside those of an earlier run.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/bench/statistics.h"
#include "tools/validate/check.h"

namespace mlff::bench {

// Of one thing in one run.
struct MeasuredTimes {
    SampleBlocks blocks;              // the best of a block counts: whatever else the machine does only takes time away
    double contention = 1;            // tools/bench/disturbance.h
    std::vector<double> probes = {};  // s; none: not known
};

// How many times as long it takes now: between `low` and `high`, as far as the spread between blocks and what else the
// machine did let one know.
struct Change {
    double ratio = 1;  // of the best times
    double low = 1, high = 1;
    validate::Verdict verdict = validate::Verdict::undecided;  // failed: more than `allowed`, for sure
};
// `allowed`: 0.05 is 5 % more. Fewer than kLeastBlocks do not know their spread, and never fail.
inline constexpr size_t kLeastBlocks = 3;
Change compare_times(const MeasuredTimes& now, const MeasuredTimes& before, double allowed);

struct Comparison {
    std::string file;                      // the baseline's
    std::vector<std::string> regressions;  // what got worse, and by how much
    std::vector<std::string> undecided;    // what may have got worse: the machine was too noisy to tell
    std::vector<std::string> improvements;
    std::vector<std::string> notes;  // rows without a partner, another version
    size_t compared = 0;             // rows in both
};

inline constexpr double kSlowdown = 0.05, kQuickSlowdown = 0.1;  // what is allowed
// A growing error is a loss before it reaches its bound: ten times that of the baseline and more than a tenth of the
// bound.
inline constexpr double kErrorGrowth = 10, kErrorShare = 0.1;

// Both are documents of report_json(). Throws Error{format} if `baseline`, called `name` in messages, is none or was
// measured with another model, machine, device, precision or number of threads, or if one of them is quick and the
// other is not. The rows are not looked at.
void check_comparable(const nlohmann::json& now, const nlohmann::json& baseline, const std::string& name);

// "1 regression", "2 regressions, 3 undecided".
std::string counts_text(const Comparison& comparison);

// check_comparable(), and then row by row.
Comparison compare_with_baseline(const nlohmann::json& now, const nlohmann::json& baseline, const std::string& name);

}  // namespace mlff::bench
