// SPDX-License-Identifier: MIT
#include "tools/bench/baseline.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/bench/results.h"
#include "tools/bench/statistics.h"

namespace mlff::bench {
namespace {

using nlohmann::json;
using validate::Verdict;

double best_of(const SampleBlocks& blocks) { return percentile(joined(blocks), 0); }

// Fields that must agree for numbers to be comparable.
constexpr const char* kSame[] = {"/machine/processor",
                                 "/machine/architecture",
                                 "/machine/instructions",
                                 "/machine/cores",
                                 "/machine/gpu/name",
                                 "/sha256",
                                 "/model",
                                 "/device",
                                 "/precision",
                                 "/head",
                                 "/threads",
                                 "/material",
                                 "/quick"};

json field(const json& document, const char* pointer) {
    const json::json_pointer at(pointer);
    return document.contains(at) ? document.at(at) : json();
}

std::string percent(double ratio) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * std::abs(ratio - 1));
    return text;
}

std::string more_or_less(double ratio) { return percent(ratio) + (ratio >= 1 ? " more" : " less"); }

// Samples taken in one go are split into this many blocks.
constexpr size_t kCutBlocks = 5;

MeasuredTimes times_of(const json& row, const std::string& title) {
    const auto samples = row.at("samples").get<std::vector<double>>();
    if (samples.empty()) fail(Status::format, title, " has no samples");
    auto sizes = row.value("blocks", std::vector<size_t>{samples.size()});
    const size_t all = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
    if (all != samples.size() || std::count(sizes.begin(), sizes.end(), size_t{0}) > 0)
        fail(Status::format, title, " has ", samples.size(), " samples, but its blocks add up to ", all);
    if (sizes.size() < kLeastBlocks) {
        const size_t count = std::min(kCutBlocks, samples.size());
        sizes.clear();
        for (size_t i = 0; i < count; ++i)
            sizes.push_back(samples.size() * (i + 1) / count - samples.size() * i / count);
    }
    MeasuredTimes times{{}, row.value("contention", 1.0), row.value("probes", std::vector<double>{})};
    if (!(times.contention >= 1))
        fail(Status::format, title, ": contention ", times.contention, ", expected at least 1");
    auto at = samples.begin();
    for (size_t size : sizes) {
        times.blocks.emplace_back(at, at + static_cast<std::ptrdiff_t>(size));
        at += static_cast<std::ptrdiff_t>(size);
    }
    return times;
}

void compare_samples(const json& now, const json& before, const std::string& title, bool is_quick, Comparison& result) {
    const std::string unit = now.at("unit").get<std::string>();
    if (before.at("unit") != unit)
        fail(Status::format, title, " is in ", before.at("unit").dump(), ", expected \"", unit, "\"");
    const MeasuredTimes found = times_of(now, title), expected = times_of(before, title);
    const bool is_time = unit == "s";
    const double allowed = is_time && is_quick ? kQuickSlowdown : kSlowdown;
    Change change = compare_times(found, expected, allowed);
    if (!is_time)
        change.verdict =
            change.low > 1 + allowed ? Verdict::failed : Verdict::passed;  // memory is exact, however few the samples
    const std::string sentence = title + ": " + quantity_text(best_of(found.blocks), unit) + ", before " +
                                 quantity_text(best_of(expected.blocks), unit) + ", " + more_or_less(change.ratio);
    if (change.verdict == Verdict::failed) result.regressions.push_back(sentence);
    if (change.verdict == Verdict::undecided)
        result.undecided.push_back(sentence + "; too noisy to tell: from " + more_or_less(change.low) + " to " +
                                   more_or_less(change.high));
    if (change.high < 1 / (1 + allowed)) result.improvements.push_back(sentence);
}

// Notes disturbances that may have made times longer.
void note_disturbances(const json& document, const std::string& run, Comparison& result) {
    double worst = 1;
    for (const json& row : document.at("rows")) worst = std::max(worst, row.value("contention", 1.0));
    if (worst > 1 + kQuickSlowdown)
        result.notes.push_back(concat("other programs may have slowed ", run, " down: times up to ", digits(worst),
                                      " times as long as alone"));
}

double number_or_nan(const json& value) { return value.is_number() ? value.get<double>() : NAN; }

void compare_checks(const json& now, const json& before, const std::string& title, Comparison& result) {
    for (const json& check : now.at("checks")) {
        const std::string name = check.at("name").get<std::string>();
        const double value = number_or_nan(check.at("value")), limit = number_or_nan(check.at("upper"));
        if (!check.at("passed").get<bool>()) {
            result.regressions.push_back(concat(title, ": ", name, " is ", value, " ",
                                                check.at("unit").get<std::string>(), ", beyond what is allowed"));
            continue;
        }
        if (!name.starts_with("forces")) continue;  // growth of memory within its bound is noise
        for (const json& old : before.at("checks"))
            if (old.at("name") == name && value > kErrorGrowth * number_or_nan(old.at("value")) &&
                value > kErrorShare * limit)
                result.regressions.push_back(concat(title, ": ", name, " differ by ", value, ", before ",
                                                    number_or_nan(old.at("value")), "; allowed ", limit));
    }
    for (const json& old : before.at("checks")) {
        bool is_there = false;
        for (const json& check : now.at("checks")) is_there |= check.at("name") == old.at("name");
        if (!is_there)
            result.notes.push_back(title + ": '" + old.at("name").get<std::string>() +
                                   "' of the baseline was not checked");
    }
}

}  // namespace

Change compare_times(const MeasuredTimes& now, const MeasuredTimes& before, double allowed) {
    double fastest = std::numeric_limits<double>::infinity();  // the processor at its best, in either run
    for (const MeasuredTimes* run : {&now, &before})
        for (double probe : run->probes) fastest = std::min(fastest, probe);
    // The range of the undisturbed time: at most that of the slowest block, and at least the best one minus all that
    // may have disturbed it.
    const auto undisturbed = [&](const MeasuredTimes& run) {
        std::vector<double> best;
        for (const auto& block : run.blocks) best.push_back(percentile(block, 0));
        const double slower = run.probes.empty() || !(fastest > 0) ? 1 : percentile(run.probes, 50) / fastest;
        return Interval{*std::min_element(best.begin(), best.end()) / (run.contention * slower),
                        *std::max_element(best.begin(), best.end())};
    };
    const Interval after = undisturbed(now), earlier = undisturbed(before);
    Change change;
    if (after.high == earlier.high && after.low == earlier.low) return {1, 1, 1, Verdict::passed};  // also for zeros
    change.ratio = best_of(now.blocks) / best_of(before.blocks);
    change.low = after.low / earlier.high;
    change.high = after.high / earlier.low;
    const bool knows_spread = std::min(now.blocks.size(), before.blocks.size()) >= kLeastBlocks;
    if (change.low > 1 + allowed && knows_spread) change.verdict = Verdict::failed;
    if (change.high <= 1 + allowed) change.verdict = Verdict::passed;
    return change;
}

std::string counts_text(const Comparison& comparison) {
    const size_t regressions = comparison.regressions.size(), undecided = comparison.undecided.size();
    return concat(regressions, regressions == 1 ? " regression" : " regressions",
                  undecided > 0 ? concat(", ", undecided, " undecided") : "");
}

void check_comparable(const json& now, const json& baseline, const std::string& name) {
    if (!baseline.is_object() || field(baseline, "/format") != "mlff-bench" || !field(baseline, "/rows").is_array())
        fail(Status::format, "--baseline ", name, ": expected a file written by mlff bench --json");
    if (field(baseline, "/version") != field(now, "/version"))
        fail(Status::format, "--baseline ", name, ": version ", field(baseline, "/version").dump(),
             " of the format, expected ", field(now, "/version").dump());
    for (const char* pointer : kSame) {
        // The same file may have another path.
        if (std::string(pointer) == "/model" && field(now, "/sha256") != "") continue;
        if (field(now, pointer) != field(baseline, pointer))
            fail(Status::format, "--baseline ", name, ": was measured with a different ",
                 std::string(pointer).substr(1), ": ", field(baseline, pointer).dump(), ", here it is ",
                 field(now, pointer).dump());
    }
}

Comparison compare_with_baseline(const json& now, const json& baseline, const std::string& name) {
    check_comparable(now, baseline, name);
    Comparison result;
    result.file = name;
    try {
        const auto title = [](const json& row) {
            return row.at("suite").get<std::string>() + ", " + row.at("name").get<std::string>();
        };
        std::map<std::string, const json*> before;
        for (const json& row : baseline.at("rows")) before[title(row)] = &row;
        for (const json& row : now.at("rows")) {
            const auto old = before.find(title(row));
            if (old == before.end()) {
                result.notes.push_back(title(row) + ": not in the baseline");
                continue;
            }
            ++result.compared;
            compare_samples(row, *old->second, title(row), field(now, "/quick") == true, result);
            compare_checks(row, *old->second, title(row), result);
        }
        note_disturbances(now, "this run", result);
        note_disturbances(baseline, "the baseline", result);
    } catch (const json::exception& error) {
        fail(Status::format, "--baseline ", name, ": ", error.what());
    } catch (const Error& error) {
        fail(Status::format, "--baseline ", name, ": ", error.what());
    }
    if (result.compared == 0) fail(Status::format, "--baseline ", name, ": has none of the rows that were measured");
    for (const char* pointer : {"/machine/gpu/driver", "/mlff"})
        if (field(now, pointer) != field(baseline, pointer))
            result.notes.push_back(concat("the baseline has ", pointer + 1, " ", field(baseline, pointer).dump(),
                                          ", here it is ", field(now, pointer).dump()));
    return result;
}

}  // namespace mlff::bench
