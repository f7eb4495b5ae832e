// SPDX-License-Identifier: MIT
#include "formats/extxyz_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "core/error.h"

namespace mlff::extxyz {
namespace {

// True if a decimal number outside the range of double is too small (not too large): its first non-zero digit is right
// of the decimal point once the exponent is applied.
bool is_tiny(std::string_view digits) {
    const size_t exponent_at = digits.find_first_of("eE");
    const std::string_view mantissa = digits.substr(0, exponent_at);
    const size_t first_digit = mantissa.find_first_of("123456789");
    if (first_digit == std::string_view::npos) return true;
    const size_t point = std::min(mantissa.find('.'), mantissa.size());
    const double magnitude = static_cast<double>(point) - static_cast<double>(first_digit);
    if (exponent_at == std::string_view::npos) return magnitude < 0;
    int64_t exponent = 0;
    if (parse_integer(digits.substr(exponent_at + 1), exponent) != NumberStatus::ok)
        return digits[exponent_at + 1] == '-';
    return magnitude + static_cast<double>(exponent) < 0;
}

NumberStatus parse_decimal(std::string_view word, double& value) {
    const char* first = word.data();
    const char* const last = first + word.size();
    if (first != last && *first == '+') {
        ++first;
        if (first != last && *first == '-') return NumberStatus::not_a_number;
    }
    const auto [rest, code] = std::from_chars(first, last, value);
    if (rest != last || code == std::errc::invalid_argument) return NumberStatus::not_a_number;
    if (code == std::errc::result_out_of_range) {
        if (!is_tiny(word)) return NumberStatus::too_large;
        value = *first == '-' ? -0.0 : 0.0;
    } else if (!std::isfinite(value) && last[-1] == ')') {
        return NumberStatus::not_a_number;  // C reads "nan(text)" as a number; XYZ does not
    }
    return NumberStatus::ok;
}

}  // namespace

void SourceLine::fail_at(size_t offset, const std::string& what) const {
    fail(Status::format, file, ":", std::to_string(number), ":", std::to_string(offset + 1), ": ", what);
}

std::string_view next_word(std::string_view text, size_t& cursor) {
    while (cursor < text.size() && is_space(text[cursor])) ++cursor;
    const size_t begin = cursor;
    while (cursor < text.size() && !is_space(text[cursor])) ++cursor;
    return text.substr(begin, cursor - begin);
}

std::string shown(std::string_view text) {
    constexpr size_t kLongest = 40;
    constexpr std::string_view kHexDigits = "0123456789abcdef";
    std::string result = "'";
    for (const char c : text.substr(0, kLongest)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) {
            result += c;
        } else {
            result += "\\x";
            result += kHexDigits[byte >> 4];
            result += kHexDigits[byte & 15];
        }
    }
    if (text.size() > kLongest) result += "...";
    return result + "'";
}

NumberStatus parse_real(std::string_view word, double& value) {
    const NumberStatus status = parse_decimal(word, value);
    if (status != NumberStatus::not_a_number) return status;
    if (word.find_first_of("dD") == std::string_view::npos) return status;
    std::string with_e(word);
    for (char& c : with_e)
        if (c == 'd' || c == 'D') c = 'e';
    return parse_decimal(with_e, value);
}

NumberStatus parse_integer(std::string_view word, int64_t& value) {
    const char* first = word.data();
    const char* const last = first + word.size();
    if (first != last && *first == '+') {
        ++first;
        if (first != last && *first == '-') return NumberStatus::not_a_number;
    }
    const auto [rest, code] = std::from_chars(first, last, value);
    if (rest != last || code == std::errc::invalid_argument) return NumberStatus::not_a_number;
    return code == std::errc() ? NumberStatus::ok : NumberStatus::too_large;
}

std::optional<bool> parse_logical(std::string_view word) {
    if (word == "T" || word == "true" || word == "True" || word == "TRUE") return true;
    if (word == "F" || word == "false" || word == "False" || word == "FALSE") return false;
    return std::nullopt;
}

void append_real(std::string& out, double value) {
    std::array<char, 32> digits;
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    const std::string_view text(digits.data(), static_cast<size_t>(written.ptr - digits.data()));
    out += text;
    if (text.find_first_not_of("-0123456789") == std::string_view::npos) out += ".0";
}

void append_integer(std::string& out, int64_t value) { out += std::to_string(value); }

}  // namespace mlff::extxyz
