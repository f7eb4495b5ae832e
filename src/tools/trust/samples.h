// SPDX-License-Identifier: MIT
// What a trust meter is fitted to: the atoms of frames, with their descriptors, neighbours and errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/session.h"
#include "formats/extxyz.h"

namespace mlff::trust {

// What a frame is for. `seen`: the model was trained on it, or on the like; `errors`: it was not, and its forces are
// known; `test`: the same, and the meter is only judged by it.
enum class FrameUse { seen, errors, test };

// The atoms of many frames, one after the other.
struct Samples {
    int descriptor_count = 0;
    std::vector<int32_t> atomic_numbers;  // [atom]
    std::vector<float> descriptors;       // [atom][D]
    std::vector<double> errors;           // [atom]: |F - F_label|, eV/angstrom; without labels 0
    std::vector<int32_t> groups;          // [atom]: number of the molecule, so that a fold has whole molecules
    std::vector<int64_t> first = {0};     // [atom + 1]: the neighbours of an atom
    std::vector<int32_t> neighbors;       // their atoms
    std::vector<double> distances;        // the same, angstrom

    int64_t atom_count() const { return static_cast<int64_t>(atomic_numbers.size()); }
};

// Evaluates a frame and adds its atoms. With `needs_labels` the frame must have a column `forces`; throws Error{format}
// if it has none, or if a number in it is not finite.
void add_frame(Samples& samples, Session& session, const Frame& frame, int32_t group, bool needs_labels);

}  // namespace mlff::trust
