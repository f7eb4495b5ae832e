// SPDX-License-Identifier: MIT
#include "bench/baseline.h"

#include <cmath>
#include <cstdio>
#include <map>

#include <nlohmann/json.hpp>

#include "bench/results.h"
#include "bench/statistics.h"
#include "core/error.h"

namespace mlff::bench {
namespace {

using nlohmann::json;

// Fields without which numbers cannot be compared.
constexpr const char* kSame[] = {"/machine/processor", "/machine/architecture", "/machine/instructions", "/machine/cores", "/machine/gpu/name", "/sha256", "/model",
                                 "/device", "/precision", "/head", "/threads", "/material", "/quick"};

json field(const json& document, const char* pointer) {
    const json::json_pointer at(pointer);
    return document.contains(at) ? document.at(at) : json();
}

std::string percent(double ratio) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * std::abs(ratio - 1));
    return text;
}

void compare_samples(const json& now, const json& before, const std::string& title, Comparison& result) {
    const auto samples_of = [](const json& row) { return row.at("samples").get<std::vector<double>>(); };
    const Summary found = summarize(samples_of(now)), expected = summarize(samples_of(before));
    const std::string unit = now.at("unit").get<std::string>();
    if (before.at("unit") != unit) fail(Status::format, title, " is in ", before.at("unit").dump(), ", expected \"", unit, "\"");
    const double ratio = found.median / expected.median;
    const std::string sentence = title + ": " + quantity_text(found.median, unit) + ", before " + quantity_text(expected.median, unit) + ", " + percent(ratio) + (ratio > 1 ? " more" : " less");
    if (found.median > (1 + kSlowdown) * expected.median && found.median_interval.low > expected.median_interval.high) result.regressions.push_back(sentence);
    if (expected.median > (1 + kSlowdown) * found.median && expected.median_interval.low > found.median_interval.high) result.improvements.push_back(sentence);
}

double number_or_nan(const json& value) { return value.is_number() ? value.get<double>() : NAN; }

void compare_checks(const json& now, const json& before, const std::string& title, Comparison& result) {
    for (const json& check : now.at("checks")) {
        const std::string name = check.at("name").get<std::string>();
        const double value = number_or_nan(check.at("value")), limit = number_or_nan(check.at("upper"));
        if (!check.at("passed").get<bool>()) {
            result.regressions.push_back(concat(title, ": ", name, " is ", value, " ", check.at("unit").get<std::string>(), ", beyond what is allowed"));
            continue;
        }
        if (!name.starts_with("forces")) continue;  // growth of memory within its bound is noise
        for (const json& old : before.at("checks"))
            if (old.at("name") == name && value > kErrorGrowth * number_or_nan(old.at("value")) && value > kErrorShare * limit)
                result.regressions.push_back(concat(title, ": ", name, " differ by ", value, ", before ", number_or_nan(old.at("value")), "; allowed ", limit));
    }
    for (const json& old : before.at("checks")) {
        bool is_there = false;
        for (const json& check : now.at("checks")) is_there |= check.at("name") == old.at("name");
        if (!is_there) result.notes.push_back(title + ": '" + old.at("name").get<std::string>() + "' of the baseline was not checked");
    }
}

}  // namespace

void check_comparable(const json& now, const json& baseline, const std::string& name) {
    if (!baseline.is_object() || field(baseline, "/format") != "mlff-bench" || !field(baseline, "/rows").is_array())
        fail(Status::format, "--baseline ", name, ": expected a file that mlff bench --json has written");
    if (field(baseline, "/version") != field(now, "/version")) fail(Status::format, "--baseline ", name, ": version ", field(baseline, "/version").dump(), " of the format, expected ", field(now, "/version").dump());
    for (const char* pointer : kSame) {
        // The same file may lie elsewhere.
        if (std::string(pointer) == "/model" && field(now, "/sha256") != "") continue;
        if (field(now, pointer) != field(baseline, pointer))
            fail(Status::format, "--baseline ", name, ": was measured with another ", std::string(pointer).substr(1), ": ", field(baseline, pointer).dump(), ", here it is ", field(now, pointer).dump());
    }
}

Comparison compare_with_baseline(const json& now, const json& baseline, const std::string& name) {
    check_comparable(now, baseline, name);
    Comparison result;
    result.file = name;
    try {
        const auto title = [](const json& row) { return row.at("suite").get<std::string>() + ", " + row.at("name").get<std::string>(); };
        std::map<std::string, const json*> before;
        for (const json& row : baseline.at("rows")) before[title(row)] = &row;
        for (const json& row : now.at("rows")) {
            const auto old = before.find(title(row));
            if (old == before.end()) {
                result.notes.push_back(title(row) + ": not in the baseline");
                continue;
            }
            ++result.compared;
            compare_samples(row, *old->second, title(row), result);
            compare_checks(row, *old->second, title(row), result);
        }
    } catch (const json::exception& error) {
        fail(Status::format, "--baseline ", name, ": ", error.what());
    } catch (const Error& error) {
        fail(Status::format, "--baseline ", name, ": ", error.what());
    }
    if (result.compared == 0) fail(Status::format, "--baseline ", name, ": has none of the rows that were measured");
    for (const char* pointer : {"/machine/gpu/driver", "/mlff"})
        if (field(now, pointer) != field(baseline, pointer))
            result.notes.push_back(concat("the baseline has ", pointer + 1, " ", field(baseline, pointer).dump(), ", here it is ", field(now, pointer).dump()));
    return result;
}

}  // namespace mlff::bench
