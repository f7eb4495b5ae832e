// SPDX-License-Identifier: MIT
#include "formats/json_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/utf8.h"

namespace mlff {
namespace {

void write_text(std::string& out, std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef", kShort = "btn?fr";  // \b is 8
    out += '"';
    for (size_t at = 0; at < text.size();) {
        const size_t length = utf8_length(text, at);
        const auto letter = static_cast<unsigned char>(text[at]);
        if (length == 0) {
            out += "\xef\xbf\xbd";
        } else if (letter == '"' || letter == '\\') {
            (out += '\\') += text[at];
        } else if (letter >= 8 && letter <= 13 && letter != 11) {
            (out += '\\') += kShort[letter - 8u];
        } else if (letter < 0x20) {
            ((out += "\\u00") += kHex[letter / 16]) += kHex[letter % 16];
        } else {
            out += text.substr(at, length);
        }
        at += std::max<size_t>(length, 1);
    }
    out += '"';
}

template <class Number>
void write_number(std::string& out, Number value) {
    std::array<char, 32> digits;
    const std::string_view text(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
    out += text;
    if (std::is_same_v<Number, double> && text.find_first_of(".e") == std::string_view::npos)
        out += ".0";  // reads back as a real number
}

void write_break(std::string& out, int indent, int level) {
    if (indent >= 0) (out += '\n').append(static_cast<size_t>(indent * level), ' ');
}

void write(std::string& out, const JsonValue& value, int indent, int level) {
    const auto write_all = [&](const auto& all, char open, char close, const auto& write_one) {
        out += open;
        bool is_first = true;
        for (const auto& one : all) {
            if (!is_first) out += ',';
            is_first = false;
            write_break(out, indent, level + 1);
            write_one(one);
        }
        if (!is_first) write_break(out, indent, level);
        out += close;
    };
    if (value.is_object())
        write_all(value.object(), '{', '}', [&](const auto& member) {
            write_text(out, member.first);
            out += indent >= 0 ? ": " : ":";
            write(out, member.second, indent, level + 1);
        });
    else if (value.is_array())
        write_all(value.array(), '[', ']', [&](const JsonValue& one) { write(out, one, indent, level + 1); });
    else if (value.is_string())
        write_text(out, value.text());
    else if (value.is_boolean())
        out += value.boolean() ? "true" : "false";
    else if (value.is_null() || !std::isfinite(value.number()))
        out += "null";
    else if (!value.is_number_integer())
        write_number(out, value.number());
    else if (value.is_number_unsigned())
        write_number(out, value.unsigned_integer());
    else
        write_number(out, value.integer());
}

}  // namespace

double JsonValue::number() const {
    if (const auto* whole = std::get_if<int64_t>(&value_)) return static_cast<double>(*whole);
    if (const auto* large = std::get_if<uint64_t>(&value_)) return static_cast<double>(*large);
    return std::get<double>(value_);
}

uint64_t JsonValue::unsigned_integer() const {
    if (const auto* large = std::get_if<uint64_t>(&value_)) return *large;
    return static_cast<uint64_t>(integer());
}

size_t JsonValue::size() const { return is_array() ? array().size() : is_object() ? object().size() : 0; }

const JsonValue* JsonValue::find(std::string_view key) const {
    if (!is_object()) return nullptr;
    const auto found = object().find(key);
    return found == object().end() ? nullptr : &found->second;
}

const JsonValue& JsonValue::operator[](std::string_view key) const {
    const JsonValue* found = find(key);
    if (!found) fail(Status::internal, "a JSON object has no member '", key, "'");
    return *found;
}

JsonValue& JsonValue::append() {
    if (is_null()) value_ = Array();
    return std::get<Array>(value_).emplace_back();
}

JsonValue& JsonValue::operator[](std::string_view key) {
    if (is_null()) value_ = Object();
    Object& members = std::get<Object>(value_);
    const auto found = members.find(key);
    return found != members.end() ? found->second : members.emplace(key, JsonValue()).first->second;
}

bool operator==(const JsonValue& a, const JsonValue& b) {
    if (a.is_number() && b.is_number() && a.is_number_integer() != b.is_number_integer())
        return a.number() == b.number();
    return a.value_ == b.value_;
}

std::string JsonValue::dump(int indent) const {
    std::string text;
    write(text, *this, indent, 0);
    return text;
}

void to_json(nlohmann::json& document, const JsonValue& value) {
    if (value.is_object()) {
        document = nlohmann::json::object();
        for (const auto& [key, member] : value.object()) document[key] = member;
    } else if (value.is_array()) {
        document = nlohmann::json::array();
        for (const JsonValue& one : value) document.push_back(one);
    } else if (value.is_string()) {
        document = value.text();
    } else if (value.is_boolean()) {
        document = value.boolean();
    } else if (value.is_null()) {
        document = nullptr;
    } else if (!value.is_number_integer()) {
        document = value.number();
    } else if (value.is_number_unsigned()) {
        document = value.unsigned_integer();
    } else {
        document = value.integer();
    }
}

}  // namespace mlff
