// SPDX-License-Identifier: MIT
// Reads frames with energies and forces, from extended XYZ or from a packed file (packed_frames.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/system_view.h"

namespace mlff::train {

enum class Split : uint8_t { train = 0, valid = 1, test = 2 };
Split split_of_text(const std::string& text);  // throws Error{format}
const char* split_name(Split split);

struct LabelledFrame {
    std::vector<int32_t> atomic_numbers;
    std::vector<double> positions;  // [atom][3], angstrom
    std::vector<double> forces;     // [atom][3], eV/angstrom
    double energy = 0;              // eV
    Mat3 cell{};
    std::array<bool, 3> periodic{};
    std::optional<std::array<double, 9>> stress;  // eV/angstrom^3, row-major
    std::optional<Split> split;
    std::string molecule;  // frames with the same name go into the same split
    int kind = 0;          // index into FrameSet::kinds

    int64_t atom_count() const { return static_cast<int64_t>(atomic_numbers.size()); }
    SystemView view() const;
};

struct FrameSet {
    std::vector<LabelledFrame> frames;
    std::vector<std::string> kinds;
    std::map<std::string, int64_t> skipped;  // reason -> number of skipped frames
    bool is_dealt_by_frame = false;  // too few molecules to hold some out: the test contains molecules seen in training

    void append(FrameSet other);
};

struct FrameRules {
    double shortest_distance = 0.3;  // angstrom; frames with closer atoms are treated as faulty
    double largest_force = 0;        // eV/angstrom; 0 = any
};

// Reads all files. Frames that break a rule (not finite, mismatched lengths, atoms too close) are skipped and counted
// by reason. Frames without a `split` get one: 90 % train, 5 % valid, 5 % test, by `molecule` or else by frame number,
// so that all frames of a molecule are in the same split. If a split would be empty, each split gets a molecule; with
// fewer than 20 molecules it gets some frames. Throws Error{file | format} for files that cannot be read at all.
FrameSet read_labelled_frames(const std::vector<std::string>& paths, const FrameRules& rules);

}  // namespace mlff::train
