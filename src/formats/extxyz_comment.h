// SPDX-License-Identifier: MIT
// The comment line of an extended XYZ frame: key=value pairs and flags, read the way ASE reads them.
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
    std::string_view brackets;  // the value as it stands in the line, if it is one [...] or {...}; else empty
    bool is_flag = false;       // a key without a value
    size_t key_offset = 0;      // in bytes from the start of the line
    size_t value_offset = 0;    // of the first byte inside the quotes or brackets
};

// In file order, no key twice. A line that mentions none of Lattice, Properties and pbc may be free text: then it is
// read as far as it makes sense, and nothing in it is an error.
std::vector<CommentEntry> parse_comment(const SourceLine& line);

// The value as numbers, flags or text. "1 2 3" and {1 2 3} are arrays; [[1, 2], [3, 4]] is one with two dimensions.
// Of ASE's "_JSON ..." values, texts and regular arrays are decoded; the others stay text, with their mark.
InfoValue interpret(const CommentEntry& entry);

// The same for a value that stood in quotes.
InfoValue interpret_text(std::string_view key, std::string_view text);

// As in ASE: a uid is a hash, which may happen to look like a number.
bool is_always_text(std::string_view key);

}  // namespace mlff::extxyz
