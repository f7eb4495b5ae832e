// SPDX-License-Identifier: MIT
// Extended XYZ: frames of atoms with named columns and a comment line of key=value pairs.
//
// Reads what ASE, OVITO, QUIP and plain XYZ writers produce. Reading is streamed: a file of any length needs the memory
// of one frame. Errors name the file, line and column. ASE can read what this writes.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/system_view.h"

namespace mlff {

// One value of the comment line: a flag, whole numbers, real numbers or text; arrays keep their shape (empty = scalar).
struct InfoValue {
    std::variant<std::vector<bool>, std::vector<int64_t>, std::vector<double>, std::vector<std::string>> values;
    std::vector<int64_t> shape;
};

// Per-atom data: one name:type:width group of Properties.
struct AtomColumn {
    std::string name;
    int64_t width = 1;
    std::variant<std::vector<int64_t>, std::vector<double>, std::vector<bool>, std::vector<std::string>> values;
};

struct Frame {
    std::vector<int32_t> atomic_numbers;
    std::vector<double> positions;  // [atom][3], angstrom
    std::optional<Mat3> cell;       // lattice vectors in rows
    std::array<bool, 3> periodic{};
    std::vector<std::pair<std::string, InfoValue>> info;  // in file order; without Lattice, Properties, pbc
    std::vector<AtomColumn> columns;                      // in file order; without species/Z and pos

    int64_t atom_count() const { return static_cast<int64_t>(atomic_numbers.size()); }
    SystemView view() const;  // valid while the frame lives; charge and spin come from total_charge/charge
                              // and total_spin/spin; throws if these are not finite numbers

    const InfoValue* find_info(std::string_view key) const;
    const AtomColumn* find_column(std::string_view name) const;        // nullptr if there is none
    std::optional<double> info_number(std::string_view key) const;     // throws if present but not a single number
    std::optional<std::string> info_text(std::string_view key) const;  // throws if present but not a single text

    // These add or replace.
    void set_info(std::string_view key, double value);
    void set_info(std::string_view key, std::vector<double> values);
    void set_info(std::string_view key, std::string text);
    void set_column(std::string_view name, int64_t width, std::vector<double> values);
};

class ExtxyzReader {
public:
    explicit ExtxyzReader(const std::string& path);                  // "-" = standard input
    ExtxyzReader(std::istream& input, std::string name_for_errors);  // does not own the stream
    ~ExtxyzReader();

    // Reads the next frame; false at a clean end (blank lines after the last frame are allowed).
    // Throws Error{format} naming file, line and column; Error{file} if it cannot be read.
    bool next(Frame& frame);

    int64_t frames_read() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

std::vector<Frame> read_extxyz(const std::string& path);

// Writes the digits needed to read back the same double.
void write_extxyz(std::ostream& output, const Frame& frame);

}  // namespace mlff
