// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <ostream>
#include <unordered_set>

#include "core/elements.h"
#include "core/error.h"
#include "formats/extxyz.h"
#include "formats/extxyz_comment.h"
#include "formats/extxyz_layout.h"
#include "formats/extxyz_text.h"

namespace mlff {
namespace {

using extxyz::append_integer;
using extxyz::append_real;

// Appends the text, quoted unless every reader would take it as is.
void append_word(std::string& out, std::string_view text) {
    const bool is_bare = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("_-+.:/").find(c) != std::string_view::npos;
    });
    if (is_bare) {
        out += text;
        return;
    }
    out += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    out += '"';
}

void append_json_string(std::string& out, std::string_view text) {
    constexpr std::string_view kHexDigits = "0123456789abcdef";
    out += '"';
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            out += "\\u00";
            out += kHexDigits[byte >> 4];
            out += kHexDigits[byte & 15];
        } else {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
    }
    out += '"';
}

// True if ASE and mlff read this text back as text, not as numbers, flags or nothing.
bool reads_back_as_text(std::string_view key, const std::string& text) {
    if (extxyz::is_always_text(key)) return true;
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    if (text.empty() || std::any_of(text.begin(), text.end(), is_control)) return false;
    const InfoValue read = extxyz::interpret_text(key, text);
    const auto* texts = std::get_if<std::vector<std::string>>(&read.values);
    if (!texts || !read.shape.empty() || texts->front() != text) return false;
    // Python accepts 1_000 as a number, and reads numbers that are too large as infinity.
    std::string digits = text;
    std::erase(digits, '_');
    double number = 0;
    return extxyz::parse_real(digits, number) == extxyz::NumberStatus::not_a_number;
}

void append_element(std::string& out, const InfoValue& value, size_t index, bool as_json) {
    if (const auto* logicals = std::get_if<std::vector<bool>>(&value.values)) {
        const bool is_true = (*logicals)[index];
        out += as_json ? (is_true ? "true" : "false") : (is_true ? "T" : "F");
    } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&value.values)) {
        append_integer(out, (*integers)[index]);
    } else if (const auto* reals = std::get_if<std::vector<double>>(&value.values)) {
        const double number = (*reals)[index];
        if (!as_json || std::isfinite(number))
            append_real(out, number);
        else
            out += std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
    } else {
        append_json_string(out, std::get<std::vector<std::string>>(value.values)[index]);
    }
}

// "[[1, 2], [3, 4]]", after ASE's JSON prefix.
std::string json_text(const InfoValue& value, size_t count) {
    std::string text = "_JSON ";
    if (count == 0) return text + "[]";
    std::vector<size_t> strides(value.shape.size(), 1);  // elements per array at each depth
    size_t product = 1;
    for (size_t depth = value.shape.size(); depth-- > 0;) {
        product *= static_cast<size_t>(value.shape[depth]);
        strides[depth] = product;
    }
    for (size_t index = 0; index < count; ++index) {
        if (index > 0) text += ", ";
        for (const size_t stride : strides)
            if (index % stride == 0) text += '[';
        append_element(text, value, index, /*as_json=*/true);
        for (const size_t stride : strides)
            if ((index + 1) % stride == 0) text += ']';
    }
    return text;
}

void append_info(std::string& out, const std::string& key, const InfoValue& value) {
    const size_t count = std::visit([](const auto& values) { return values.size(); }, value.values);
    const bool is_empty = std::find(value.shape.begin(), value.shape.end(), 0) != value.shape.end();
    size_t expected = is_empty ? 0 : 1;
    for (const int64_t length : value.shape) {
        const bool fits = length >= 0 && (is_empty || expected <= count / static_cast<size_t>(length));
        expected = fits ? expected * static_cast<size_t>(length) : count + 1;
        if (!fits) break;
    }
    if (expected != count)
        fail(Status::argument, "the value of ", key, " has ", count, " elements, which do not match its shape");
    append_word(out, key);
    out += '=';
    const bool is_text = std::holds_alternative<std::vector<std::string>>(value.values);
    // ASE reads these two as 3x3 matrices in column-major order, and rejects any other form.
    const bool is_tensor = (key == "stress" || key == "virial") && count == 9 && !is_text;
    if (is_text && value.shape.empty()) {
        const std::string& text = std::get<std::vector<std::string>>(value.values)[0];
        std::string json;
        if (!reads_back_as_text(key, text)) {
            json = "_JSON ";
            append_json_string(json, text);
        }
        append_word(out, json.empty() ? text : json);
    } else if (value.shape.empty()) {
        append_element(out, value, 0, /*as_json=*/false);
    } else if (is_tensor || (value.shape.size() == 1 && count > 1 && !is_text)) {
        const bool by_columns = is_tensor && value.shape == std::vector<int64_t>{3, 3};
        out += '"';
        for (size_t index = 0; index < count; ++index) {
            if (index > 0) out += ' ';
            append_element(out, value, by_columns ? index % 3 * 3 + index / 3 : index, /*as_json=*/false);
        }
        out += '"';
    } else {
        append_word(out, json_text(value, count));
    }
}

std::string properties_text(const Frame& frame) {
    std::string text = "species:S:1:pos:R:3";
    std::unordered_set<std::string_view> names;
    for (const AtomColumn& column : frame.columns) {
        if (column.name.empty() || column.name.find(':') != std::string::npos ||
            extxyz::role_of(column.name) != extxyz::Role::other)
            fail(Status::argument, "a column of an extended XYZ file cannot be named ", extxyz::shown(column.name));
        if (!names.insert(column.name).second)
            fail(Status::argument, "the column ", extxyz::shown(column.name), " occurs twice");
        const auto count =
            std::visit([](const auto& values) { return static_cast<int64_t>(values.size()); }, column.values);
        if (column.width < 1 || count % column.width != 0 || count / column.width != frame.atom_count())
            fail(Status::argument, "the column ", extxyz::shown(column.name), " has ", std::to_string(count),
                 " values, expected ", std::to_string(column.width), " for each of ",
                 std::to_string(frame.atom_count()), " atoms");
        constexpr std::string_view kTypes = "IRLS";  // in the order of the variant
        text += ':' + column.name + ':' + kTypes[column.values.index()] + ':' + std::to_string(column.width);
    }
    return text;
}

void append_comment(std::string& out, const Frame& frame) {
    if (frame.cell) {
        out += "Lattice=\"";
        for (const Vec3& vector : *frame.cell) {
            for (const double number : vector) {
                if (!std::isfinite(number)) fail(Status::system, "the cell is not finite");
                append_real(out, number);
                out += ' ';
            }
        }
        out.back() = '"';
        out += ' ';
    } else if (frame.periodic[0] || frame.periodic[1] || frame.periodic[2]) {
        fail(Status::system, "the frame is periodic but has no cell");
    }
    out += "Properties=";
    append_word(out, properties_text(frame));
    std::unordered_set<std::string_view> keys;
    for (const auto& [key, value] : frame.info) {
        if (key.empty() || key == "Lattice" || key == "Properties" || key == "pbc")
            fail(Status::argument, "a value of the comment line cannot be named ", extxyz::shown(key));
        if (!keys.insert(key).second)
            fail(Status::argument, "the value ", extxyz::shown(key), " occurs twice in the comment line");
        out += ' ';
        append_info(out, key, value);
    }
    out += " pbc=\"";
    for (const bool is_periodic : frame.periodic) out += is_periodic ? "T " : "F ";
    out.back() = '"';
}

void append_column_value(std::string& out, const AtomColumn& column, size_t index) {
    if (const auto* reals = std::get_if<std::vector<double>>(&column.values)) {
        append_real(out, (*reals)[index]);
    } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&column.values)) {
        append_integer(out, (*integers)[index]);
    } else if (const auto* logicals = std::get_if<std::vector<bool>>(&column.values)) {
        out += (*logicals)[index] ? 'T' : 'F';
    } else {
        const std::string& text = std::get<std::vector<std::string>>(column.values)[index];
        if (text.empty() || std::any_of(text.begin(), text.end(), extxyz::is_space))
            fail(Status::argument, "the column ", extxyz::shown(column.name), " cannot hold the text ",
                 extxyz::shown(text), ": it must be one word");
        out += text;
    }
}

}  // namespace

void write_extxyz(std::ostream& output, const Frame& frame) {
    const size_t atom_count = frame.atomic_numbers.size();
    if (frame.positions.size() != 3 * atom_count)
        fail(Status::argument, "the frame has ", std::to_string(atom_count), " atoms but ",
             std::to_string(frame.positions.size()), " coordinates");
    std::string text = std::to_string(atom_count) + '\n';
    append_comment(text, frame);
    text += '\n';
    for (size_t atom = 0; atom < atom_count; ++atom) {
        text += element_symbol(frame.atomic_numbers[atom]);
        for (size_t axis = 0; axis < 3; ++axis) {
            const double number = frame.positions[3 * atom + axis];
            if (!std::isfinite(number))
                fail(Status::system, "the position of atom ", std::to_string(atom), " is not finite");
            text += ' ';
            append_real(text, number);
        }
        for (const AtomColumn& column : frame.columns) {
            const auto width = static_cast<size_t>(column.width);
            for (size_t index = atom * width; index < (atom + 1) * width; ++index) {
                text += ' ';
                append_column_value(text, column, index);
            }
        }
        text += '\n';
    }
    output.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!output) fail(Status::file, "cannot write the frame");
}

}  // namespace mlff
