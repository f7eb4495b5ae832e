// SPDX-License-Identifier: MIT
// Comparison of numbers in tests. Every comparison is written so that NaN fails it.
#pragma once

#include <cmath>
#include <span>
#include <sstream>
#include <string>

namespace mlff::test {

inline bool is_close(double found, double expected, double tolerance) {
    return std::abs(found - expected) <= tolerance;
}

// "" if all entries are close, else a sentence about the worst one.
inline std::string difference(std::span<const double> found, std::span<const double> expected, double tolerance) {
    std::ostringstream text;
    text.precision(17);
    if (found.size() != expected.size()) {
        text << found.size() << " numbers, expected " << expected.size();
        return text.str();
    }
    size_t bad = 0, worst = 0;
    double worst_error = -1;
    for (size_t i = 0; i < found.size(); ++i) {
        if (is_close(found[i], expected[i], tolerance)) continue;
        ++bad;
        const double error = std::abs(found[i] - expected[i]);
        const double rank = std::isnan(error) ? HUGE_VAL : error;
        if (rank > worst_error) worst_error = rank, worst = i;
    }
    if (bad > 0)
        text << bad << " of " << found.size() << " numbers differ by more than " << tolerance << "; number " << worst
             << " is " << found[worst] << ", expected " << expected[worst];
    return text.str();
}

}  // namespace mlff::test

#define CHECK_ALL_CLOSE(found, expected, tolerance) CHECK_EQ(mlff::test::difference(found, expected, tolerance), "")
