// SPDX-License-Identifier: MIT
// What the comment line says about the frame: its cell, its periodicity and the columns of its atom lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/extxyz.h"
#include "formats/extxyz_text.h"

namespace mlff::extxyz {

enum class Role { element, position, other };

// One name:type:width of Properties.
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

// Fills everything of the frame but the atoms.
Layout read_comment(const SourceLine& line, Frame& frame);

// species, symbols, Z, numbers; pos, positions: names that are not columns of their own.
Role role_of(std::string_view name);

// Throws, naming `what`, unless the word is a finite number.
double parse_finite(const SourceLine& line, size_t offset, std::string_view word, std::string_view what);

}  // namespace mlff::extxyz
