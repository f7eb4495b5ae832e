// SPDX-License-Identifier: MIT
// One number and the range it has to be in.
#pragma once

#include <cmath>
#include <limits>
#include <string>

namespace mlff::validate {

struct Check {
    std::string name;
    double value = 0;
    std::string unit;  // "" = a plain number
    double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
    double uncertainty = 0;  // statistical, three standard errors: only what is out of the range by more fails
    std::string note;        // which atom, which element; "" = nothing to add

    bool is_passed() const { return value + uncertainty >= lower && value - uncertainty <= upper; }  // NaN fails
};

inline Check at_most(std::string name, double value, double limit, std::string unit, std::string note = "") {
    return {std::move(name), value, std::move(unit), -std::numeric_limits<double>::infinity(), limit, 0, std::move(note)};
}

}  // namespace mlff::validate
