// SPDX-License-Identifier: MIT
// The frame's layout from its comment line: cell, periodicity, and the columns of the atom lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/extxyz.h"
#include "formats/extxyz_text.h"

namespace mlff::extxyz {

enum class Role { element, position, other };

// One name:type:width group of Properties.
struct Property {
    std::string name;
    char type = 'R';
    int64_t width = 1;
    Role role = Role::other;
    size_t column = 0;  // in Frame::columns, for Role::other
};

struct Layout {
    std::vector<Property> properties;
    bool ignores_extra_columns = false;  // plain XYZ
};

// Fills in the whole frame except the atoms.
Layout read_comment(const SourceLine& line, Frame& frame);

// species, symbols, Z, numbers, pos and positions have a role; they are not stored as extra columns.
Role role_of(std::string_view name);

// Throws, naming `what`, unless the word is a finite number.
double parse_finite(const SourceLine& line, size_t offset, std::string_view word, std::string_view what);

}  // namespace mlff::extxyz
