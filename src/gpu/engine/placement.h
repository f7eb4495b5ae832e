// SPDX-License-Identifier: MIT
// Places non-periodic systems side by side in one system, so far apart that atoms of different systems are never
// neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/system_view.h"

namespace mlff::gpu {

class Placement {
public:
    // Whether all systems are non-periodic and small enough. Large systems would be placed far from the origin, where
    // distances lose digits.
    static bool is_possible(std::span<const SystemView> systems);

    // Chooses places for the systems at their present positions. Atoms farther apart than `reach` are never neighbours
    // while these places are used.
    void choose(std::span<const SystemView> systems, double reach);
    // Whether the places were chosen for systems of the same numbers of atoms.
    bool holds(std::span<const SystemView> systems) const;
    // Writes positions[atom][3], one system after the other.
    void place(std::span<const SystemView> systems, double* positions) const;

private:
    std::vector<int64_t> atom_counts_;  // [system]
    std::vector<Vec3> shifts_;          // [system]
};

}  // namespace mlff::gpu
