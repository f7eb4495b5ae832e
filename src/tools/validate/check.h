// SPDX-License-Identifier: MIT
// One number and the range it has to be in.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace mlff::validate {

enum class Verdict { passed, failed, undecided };

// "pass", "fail" or "undecided".
const char* verdict_word(Verdict verdict);

inline constexpr double kStandardErrors = 3;  // an uncertainty is as many

struct Check {
    std::string name;
    double value = 0;
    std::string unit;  // "" = a plain number
    double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
    double uncertainty = 0;        // statistical, kStandardErrors standard errors; 0 = the number is known
    std::string note;              // which atom, which element; "" = nothing to add
    bool has_few_samples = false;  // too few for a good number to mean anything; a bad one does
    int64_t deciding_steps = 0;    // where it is undecided: about the `--steps` that would decide; 0 = not known

    // Passed: all of value +- uncertainty is in the range. Failed: all of it is outside, or one of them is NaN.
    // Undecided: the run was too short to know.
    Verdict verdict() const;
    bool is_passed() const { return verdict() == Verdict::passed; }
};

inline Check at_most(std::string name, double value, double limit, std::string unit, std::string note = "") {
    return {std::move(name), value, std::move(unit), -std::numeric_limits<double>::infinity(),
            limit,           0,     std::move(note)};
}

// Where the check is undecided, sets deciding_steps from those of this run and from how the uncertainty shrinks: with
// the length of the run to the power -`power`.
void suggest_steps(Check& check, double steps, double power);

// Rounded up to two digits.
int64_t round_steps(double steps);

}  // namespace mlff::validate
