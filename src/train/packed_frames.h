// SPDX-License-Identifier: MIT
// Labelled frames in one compact safetensors file. Metadata: `format` = `mlff-frames`, `layout` = `1`, `kinds` = JSON
// list.
//
//   atom_counts  uint16 [frames]               numbers    uint8 [atoms]
//   positions    as below, angstrom            forces     as below, eV/angstrom
//   energies     float64 [frames], eV          split      uint8 [frames]: 0 train, 1 valid, 2 test
//   kind         uint8 [frames]: into `kinds`  cells      float64 [frames][9], may be absent: not periodic
//   stress       float64 [frames][9], may be absent, NaN where unknown
//
// Positions and forces are float32 or float64 [atoms][3], or uint8 [3][atoms][3]: the bytes of integers, lowest first.
// Each integer is the value divided by `position_step` or `force_step` (metadata), rounded, plus 2^23. Stored byte by
// byte they compress well. With the steps of pack_frames.py (2e-5 angstrom, 2e-4 eV/angstrom) the errors are at most
// 1e-5 angstrom and 1e-4 eV/angstrom.
#pragma once

#include <string>

#include "train/labelled_frames.h"

namespace mlff::train {

bool is_packed_frames(const std::string& path);
// Throws Error{file | format}.
FrameSet read_packed_frames(const std::string& path);

}  // namespace mlff::train
