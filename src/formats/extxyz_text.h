// SPDX-License-Identifier: MIT
// Words, numbers and positions in the text of an extended XYZ file. Independent of the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mlff::extxyz {

inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// One line of the file, without its line end; valid until the next line is read.
struct SourceLine {
    std::string_view file;
    int64_t number = 0;  // from 1
    std::string_view text;

    // Throws Error{format} "file:line:column: what" for the byte at `offset` (from 0) of the line.
    [[noreturn]] void fail_at(size_t offset, const std::string& what) const;
};

// The next word (run of non-blank characters) from `cursor` on; empty at the end of the line. Moves `cursor` past it.
std::string_view next_word(std::string_view text, size_t& cursor);

// Quotes text for an error message: shortens it, and writes bytes that are not printable ASCII as \xNN.
std::string shown(std::string_view text);

enum class NumberStatus { ok, not_a_number, too_large };

// The whole word must be a number. Fortran exponents (1.0d-3), a leading '+', nan and inf are accepted. Numbers too
// small for a double become zero.
NumberStatus parse_real(std::string_view word, double& value);
NumberStatus parse_integer(std::string_view word, int64_t& value);

// Accepts T, F, true, false and the other spellings that ASE accepts.
std::optional<bool> parse_logical(std::string_view word);

// The shortest digits that read back as the same double, with a decimal point or exponent so that it stays a real
// number.
void append_real(std::string& out, double value);
void append_integer(std::string& out, int64_t value);

}  // namespace mlff::extxyz
