// SPDX-License-Identifier: MIT
#include "tools/validate/check.h"

#include <algorithm>
#include <cmath>

namespace mlff::validate {

const char* verdict_word(Verdict verdict) {
    return verdict == Verdict::passed ? "pass" : verdict == Verdict::failed ? "fail" : "undecided";
}

Verdict Check::verdict() const {
    const double low = value - uncertainty, high = value + uncertainty;
    if (!(high >= lower && low <= upper)) return Verdict::failed;  // also for NaN
    return low >= lower && high <= upper && !has_few_samples ? Verdict::passed : Verdict::undecided;
}

// A longer run is decisive if its uncertainty is small compared with the distance of the true value from the nearer
// limit, so that its own scatter, of two standard errors, does not matter. The true value is unknown: it is typically
// one standard error or more from the value found. If the allowed range lies within the uncertainty, assume a value in
// the middle of the range.
void suggest_steps(Check& check, double steps, double power) {
    if (check.verdict() != Verdict::undecided) return;
    constexpr double kScatter = 2;
    const double half_width = 0.5 * (check.upper - check.lower),
                 found = std::min(std::abs(check.value - check.lower), std::abs(check.upper - check.value));
    const double distance = std::min(half_width, std::max(found, check.uncertainty / kStandardErrors));
    const double wanted = distance * kStandardErrors / (kStandardErrors + kScatter);
    check.deciding_steps = round_steps(steps * std::pow(check.uncertainty / wanted, 1 / power));
}

int64_t round_steps(double steps) {
    constexpr double kMost = 1e15;  // far more than anyone runs; keeps the number inside an integer
    if (!(steps < kMost)) return static_cast<int64_t>(kMost);
    const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(steps)) - 1));
    return static_cast<int64_t>(std::llround(std::ceil(steps / unit) * unit));
}

}  // namespace mlff::validate
