// SPDX-License-Identifier: MIT
// A check: one number and its allowed range.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace mlff::validate {

enum class Verdict { passed, failed, undecided };

// "pass", "fail" or "undecided".
const char* verdict_word(Verdict verdict);

inline constexpr double kStandardErrors = 3;  // per uncertainty

struct Check {
    std::string name;
    double value = 0;
    std::string unit;  // "" = dimensionless
    double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
    double uncertainty = 0;        // statistical, kStandardErrors standard errors; 0 = the number is exact
    std::string note;              // which atom, which element; "" = nothing to add
    bool has_few_samples = false;  // too few samples to pass; it can still fail
    int64_t deciding_steps = 0;    // if undecided: the approximate `--steps` that would decide; 0 = unknown

    // Passed: all of value +- uncertainty is in the range. Failed: all of it is outside, or one of them is NaN.
    // Undecided: the run was too short to tell.
    Verdict verdict() const;
    bool is_passed() const { return verdict() == Verdict::passed; }
};

inline Check at_most(std::string name, double value, double limit, std::string unit, std::string note = "") {
    return {std::move(name), value, std::move(unit), -std::numeric_limits<double>::infinity(),
            limit,           0,     std::move(note)};
}

// For an undecided check, sets deciding_steps from the steps of this run, given that the uncertainty shrinks with the
// length of the run to the power -`power`.
void suggest_steps(Check& check, double steps, double power);

// Rounded up to two digits.
int64_t round_steps(double steps);

}  // namespace mlff::validate
