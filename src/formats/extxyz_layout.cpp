// SPDX-License-Identifier: MIT
#include "formats/extxyz_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include "core/error.h"
#include "formats/extxyz_comment.h"

namespace mlff::extxyz {
namespace {

// Maps synonyms to one name. A frame must not contain two synonyms.
std::string_view canonical_name(std::string_view name) {
    if (name == "symbols") return "species";
    if (name == "numbers") return "Z";
    if (name == "positions") return "pos";
    return name;
}

Property parse_property(const SourceLine& line, size_t offset, const std::array<std::string_view, 3>& fields) {
    const auto& [name, type, width] = fields;
    if (name.empty()) line.fail_at(offset, "expected a name in Properties, found nothing");
    Property property{std::string(name), 'R', 1, role_of(name), 0};
    const size_t type_offset = offset + name.size() + 1;
    if (type != "R" && type != "I" && type != "S" && type != "L")
        line.fail_at(type_offset, concat("expected the type S, I, R or L for ", shown(name), ", found ", shown(type)));
    property.type = type[0];
    const size_t width_offset = type_offset + 2;
    if (parse_integer(width, property.width) != NumberStatus::ok || property.width < 1)
        line.fail_at(width_offset, concat("expected a number of columns for ", shown(name), ", found ", shown(width)));
    if (property.role == Role::position && (property.type != 'R' || property.width != 3))
        line.fail_at(type_offset, concat("expected ", name, ":R:3 in Properties"));
    const bool is_number = canonical_name(name) == "Z";
    // ASE writes species:R:1 if there are no atoms, so an unusual type is an error only once there are atom lines.
    const bool is_element_type = is_number ? property.type == 'I' : property.type != 'L';
    if (property.role == Role::element && (!is_element_type || property.width != 1))
        line.fail_at(type_offset, concat("expected ", name, is_number ? ":I:1" : ":S:1", " in Properties"));
    return property;
}

std::vector<Property> parse_properties(const SourceLine& line, const CommentEntry& entry) {
    std::vector<Property> properties;
    std::unordered_set<std::string> names;
    bool has_element = false;
    bool has_position = false;
    const std::string_view text = entry.text;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t offset = entry.value_offset + begin;
        std::array<std::string_view, 3> fields;
        for (std::string_view& field : fields) {
            if (begin > text.size())
                line.fail_at(entry.value_offset + text.size(), "Properties ends within a name:type:width group");
            const size_t colon = std::min(text.find(':', begin), text.size());
            field = text.substr(begin, colon - begin);
            begin = colon + 1;
        }
        properties.push_back(parse_property(line, offset, fields));
        if (!names.insert(std::string(canonical_name(fields[0]))).second)
            line.fail_at(offset, concat("the property ", shown(fields[0]), " occurs twice in Properties"));
        has_element |= properties.back().role == Role::element;
        has_position |= properties.back().role == Role::position;
    }
    if (!has_element) line.fail_at(entry.value_offset, "Properties has neither species nor Z");
    if (!has_position) line.fail_at(entry.value_offset, "Properties has no pos");
    return properties;
}

// Nine numbers: the vectors a, b, c, one after another. Three numbers: the edge lengths of an orthorhombic cell.
Mat3 parse_lattice(const SourceLine& line, const CommentEntry& entry) {
    const auto is_separator = [](char c) {
        return is_space(c) || std::string_view(",[]{}").find(c) != std::string_view::npos;
    };
    const std::string_view text = entry.text;
    std::vector<double> numbers;
    for (size_t cursor = 0; cursor < text.size();) {
        const size_t begin = cursor;
        while (cursor < text.size() && !is_separator(text[cursor])) ++cursor;
        if (cursor > begin)
            numbers.push_back(
                parse_finite(line, entry.value_offset + begin, text.substr(begin, cursor - begin), "Lattice"));
        else
            ++cursor;
    }
    if (numbers.size() != 9 && numbers.size() != 3)
        line.fail_at(entry.value_offset,
                     concat("expected 9 or 3 numbers for Lattice, found ", std::to_string(numbers.size())));
    if (text.find_first_of("[]{}") != std::string_view::npos && interpret(entry).shape != std::vector<int64_t>{3, 3})
        line.fail_at(entry.value_offset, "expected three rows of three numbers for Lattice");
    if (numbers.size() == 3) return {{{numbers[0], 0, 0}, {0, numbers[1], 0}, {0, 0, numbers[2]}}};
    Mat3 cell;
    for (size_t index = 0; index < 9; ++index) cell[index / 3][index % 3] = numbers[index];
    return cell;
}

std::array<bool, 3> parse_periodic(const SourceLine& line, const CommentEntry& entry) {
    const InfoValue value = interpret(entry);
    std::vector<bool> flags;
    if (const auto* logicals = std::get_if<std::vector<bool>>(&value.values)) flags = *logicals;
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value.values)) {
        for (const int64_t number : *integers)
            if (number == 0 || number == 1) flags.push_back(number == 1);
        if (flags.size() != integers->size()) flags.clear();
    }
    if (flags.size() == 1) flags.resize(3, flags[0]);
    if (flags.size() != 3 || value.shape.size() > 1)
        line.fail_at(entry.value_offset, concat("expected three flags T or F for pbc, found ", shown(entry.text)));
    return {flags[0], flags[1], flags[2]};
}

// Without a value these keys are words of free text ("total charge 0") and have no meaning.
bool needs_value(std::string_view key) {
    for (const std::string_view name : {"Properties", "Lattice", "pbc", "charge", "total_charge", "spin", "total_spin"})
        if (key == name) return true;
    return false;
}

}  // namespace

Role role_of(std::string_view name) {
    if (name == "species" || name == "symbols" || name == "Z" || name == "numbers") return Role::element;
    if (name == "pos" || name == "positions") return Role::position;
    return Role::other;
}

double parse_finite(const SourceLine& line, size_t offset, std::string_view word, std::string_view what) {
    double value = 0;
    const NumberStatus status = parse_real(word, value);
    if (status == NumberStatus::too_large)
        line.fail_at(offset, concat("the number ", shown(word), " for ", what, " is too large"));
    if (status != NumberStatus::ok)
        line.fail_at(offset, concat("expected a number for ", what, ", found ", shown(word)));
    if (!std::isfinite(value))
        line.fail_at(offset, concat("expected a finite number for ", what, ", found ", shown(word)));
    return value;
}

Layout read_comment(const SourceLine& line, Frame& frame) {
    Layout layout;
    const CommentEntry* pbc = nullptr;
    const std::vector<CommentEntry> entries = parse_comment(line);
    for (const CommentEntry& entry : entries) {
        if (entry.is_flag && needs_value(entry.key)) continue;
        if (entry.key == "Properties")
            layout.properties = parse_properties(line, entry);
        else if (entry.key == "Lattice")
            frame.cell = parse_lattice(line, entry);
        else if (entry.key == "pbc")
            pbc = &entry;
        else
            frame.info.emplace_back(entry.key, interpret(entry));
    }
    if (pbc) {
        frame.periodic = parse_periodic(line, *pbc);
        if (!frame.cell && (frame.periodic[0] || frame.periodic[1] || frame.periodic[2]))
            line.fail_at(pbc->key_offset, "pbc is true, but the comment line has no Lattice");
    } else if (frame.cell) {
        frame.periodic = {true, true, true};
    }
    if (layout.properties.empty()) {
        layout.ignores_extra_columns = true;
        layout.properties = {{"species", 'S', 1, Role::element, 0}, {"pos", 'R', 3, Role::position, 0}};
    }
    return layout;
}

}  // namespace mlff::extxyz
