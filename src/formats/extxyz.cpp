// SPDX-License-Identifier: MIT
#include "formats/extxyz.h"

#include <cmath>

#include "core/error.h"

namespace mlff {
namespace {

void put_info(Frame& frame, std::string_view key, InfoValue value) {
    for (auto& [name, old_value] : frame.info) {
        if (name == key) {
            old_value = std::move(value);
            return;
        }
    }
    frame.info.emplace_back(key, std::move(value));
}

// The value of whichever key is present. Throws if both are present and differ.
double number_of_either(const Frame& frame, std::string_view key, std::string_view other_key, double otherwise) {
    const std::optional<double> value = frame.info_number(key);
    const std::optional<double> other = frame.info_number(other_key);
    if (value && other && *value != *other)
        fail(Status::system, "the frame has both ", key, " and ", other_key, ", with different values");
    const double result = value ? *value : other.value_or(otherwise);
    if (!std::isfinite(result)) fail(Status::system, "the ", value ? key : other_key, " of the frame is not finite");
    return result;
}

}  // namespace

SystemView Frame::view() const {
    SystemView system;
    system.atom_count = atom_count();
    system.atomic_numbers = atomic_numbers.data();
    system.positions = positions.data();
    if (cell) system.cell = *cell;
    system.periodic = periodic;
    system.total_charge = number_of_either(*this, "total_charge", "charge", system.total_charge);
    system.spin_multiplicity = number_of_either(*this, "total_spin", "spin", system.spin_multiplicity);
    return system;
}

const InfoValue* Frame::find_info(std::string_view key) const {
    for (const auto& [name, value] : info)
        if (name == key) return &value;
    return nullptr;
}

std::optional<double> Frame::info_number(std::string_view key) const {
    const InfoValue* value = find_info(key);
    if (!value) return std::nullopt;
    if (const auto* reals = std::get_if<std::vector<double>>(&value->values); reals && reals->size() == 1)
        return reals->front();
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value->values); integers && integers->size() == 1)
        return static_cast<double>(integers->front());
    fail(Status::format, "the value of ", key, " in the comment line is not a single number");
}

std::optional<std::string> Frame::info_text(std::string_view key) const {
    const InfoValue* value = find_info(key);
    if (!value) return std::nullopt;
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value->values); texts && texts->size() == 1)
        return texts->front();
    fail(Status::format, "the value of ", key, " in the comment line is not a single text");
}

void Frame::set_info(std::string_view key, double value) { put_info(*this, key, {std::vector<double>{value}, {}}); }

void Frame::set_info(std::string_view key, std::vector<double> values) {
    const auto count = static_cast<int64_t>(values.size());
    put_info(*this, key, {std::move(values), {count}});
}

void Frame::set_info(std::string_view key, std::string text) {
    put_info(*this, key, {std::vector<std::string>{std::move(text)}, {}});
}

const AtomColumn* Frame::find_column(std::string_view name) const {
    for (const AtomColumn& column : columns)
        if (column.name == name) return &column;
    return nullptr;
}

void Frame::set_column(std::string_view name, int64_t width, std::vector<double> values) {
    const auto count = static_cast<int64_t>(values.size());
    if (width < 1 || count % width != 0 || count / width != atom_count())
        fail(Status::argument, "the column ", name, " has ", std::to_string(count), " values, expected ",
             std::to_string(width), " for each of ", std::to_string(atom_count()), " atoms");
    for (AtomColumn& column : columns) {
        if (column.name == name) {
            column.width = width;
            column.values = std::move(values);
            return;
        }
    }
    columns.push_back({std::string(name), width, std::move(values)});
}

std::vector<Frame> read_extxyz(const std::string& path) {
    ExtxyzReader reader(path);
    std::vector<Frame> frames;
    for (Frame frame; reader.next(frame);) frames.push_back(std::move(frame));
    return frames;
}

}  // namespace mlff
