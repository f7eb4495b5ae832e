// SPDX-License-Identifier: MIT
// A motion or reflection after which a structure looks as before.
#pragma once

#include <cstdint>
#include <vector>

#include "core/matrix3.h"

namespace mlff {

struct SymmetryOperation {
    Mat3 rotation = kIdentity;      // Cartesian: a displacement u becomes rotation . u
    std::vector<int32_t> moved_to;  // [atom]: the atom (or an image of it) whose place it takes
};

}  // namespace mlff
