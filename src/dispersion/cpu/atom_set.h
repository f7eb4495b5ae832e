// SPDX-License-Identifier: MIT
// The atoms that matter to own atoms: own atoms first, then ghosts.
#pragma once

#include <cstddef>
#include <vector>

#include "core/system_view.h"

namespace mlff::dispersion::cpu {

struct AtomSet {
    int64_t owned_count = 0;
    std::vector<double> positions;  // [atom][3], angstrom
    std::vector<int32_t> slots;     // [atom]: of the element
    std::vector<int32_t> image_of;  // [ghost]: the own atom; empty in a domain, whose ghosts come from elsewhere

    std::vector<Vec3> fractions;  // scratch memory of place_system()

    int64_t count() const { return static_cast<int64_t>(slots.size()); }
};

// A whole system: own atoms in the cell, and all images within `range` of it. `slot_of`: [atomic number].
void place_system(const SystemView& system, const std::vector<int32_t>& slot_of, double range, AtomSet& atoms);
// The atoms of a domain as they are.
void place_domain(const SystemView& system, int64_t owned_count, const std::vector<int32_t>& slot_of, AtomSet& atoms);

}  // namespace mlff::dispersion::cpu
