// SPDX-License-Identifier: MIT
// The comment line of an extended XYZ frame: key=value pairs and flags, parsed as ASE parses them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/extxyz.h"
#include "formats/extxyz_text.h"

namespace mlff::extxyz {

struct CommentEntry {
    std::string key;
    std::string text;           // the value without its quotes or outer brackets, escapes resolved
    std::string_view brackets;  // the raw value, if it is one [...] or {...}; else empty
    bool is_flag = false;       // a key without a value
    size_t key_offset = 0;      // in bytes from the start of the line
    size_t value_offset = 0;    // first byte inside the quotes or brackets
};

// Entries in file order; duplicate keys are an error. A line that contains none of Lattice, Properties and pbc may be
// free text: then as much as possible is parsed, and nothing in it is an error.
std::vector<CommentEntry> parse_comment(const SourceLine& line);

// The value as numbers, flags or text. "1 2 3" and {1 2 3} are arrays; [[1, 2], [3, 4]] has two dimensions. ASE's
// "_JSON ..." values are decoded if they are texts or regular arrays; others stay text, including the prefix.
InfoValue interpret(const CommentEntry& entry);

// The same for a quoted value.
InfoValue interpret_text(std::string_view key, std::string_view text);

// True for uid, as in ASE: it is a hash, which may look like a number.
bool is_always_text(std::string_view key);

}  // namespace mlff::extxyz
