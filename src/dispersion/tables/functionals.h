// SPDX-License-Identifier: MIT
// The parameters of damping, by functional or by value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mlff::dispersion {

enum class DampingKind { bj, zero };

struct Damping {
    DampingKind kind = DampingKind::bj;
    double s6 = 1, s8 = 0;
    double a1 = 0, a2 = 0;    // bj; a2 in bohr
    double rs6 = 0, rs8 = 1;  // zero
    int alpha = 14;           // even

    bool operator==(const Damping&) const = default;
};

std::string_view kind_name(DampingKind kind);  // "bj", "zero"

// Names are compared without case, '-', '_' and '/'. Throws Error{argument} with the names that come closest if there
// is none with this damping.
Damping damping_of_functional(std::string_view name, DampingKind kind);
std::vector<std::string> functional_names(DampingKind kind);  // sorted

// "s6=1,s8=0.7,a1=0.4,a2=4.4". s6, rs8 and alpha may be left out. Throws Error{argument}.
Damping damping_of_values(std::string_view text, DampingKind kind);
std::string values_text(const Damping& damping);  // the same form, with all numbers

}  // namespace mlff::dispersion
