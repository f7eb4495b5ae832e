// SPDX-License-Identifier: MIT
// Results beside those of an earlier run.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace mlff::bench {

struct Comparison {
    std::string file;                      // the baseline's
    std::vector<std::string> regressions;  // what got worse, and by how much
    std::vector<std::string> improvements;
    std::vector<std::string> notes;  // rows without a partner, another version
    size_t compared = 0;             // rows in both
};

inline constexpr double kSlowdown = 0.05;  // of the median
// A growing error is a loss before it reaches its bound: ten times that of the baseline and more than a tenth of the bound.
inline constexpr double kErrorGrowth = 10, kErrorShare = 0.1;

// Both are documents of report_json(). Throws Error{format} if `baseline`, called `name` in messages, is none or was measured with another model, machine, device,
// precision or number of threads, or if one of them is quick and the other is not. The rows are not looked at.
void check_comparable(const nlohmann::json& now, const nlohmann::json& baseline, const std::string& name);

// check_comparable(), and then row by row.
Comparison compare_with_baseline(const nlohmann::json& now, const nlohmann::json& baseline, const std::string& name);

}  // namespace mlff::bench
