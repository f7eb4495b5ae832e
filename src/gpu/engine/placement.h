// SPDX-License-Identifier: MIT
// Systems without boundaries, placed side by side in one: so far apart that no atom is a neighbour of another system's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/system_view.h"

namespace mlff::gpu {

class Placement {
public:
    // Whether they have no boundaries, and are not so large that places far from the origin would cost digits of the
    // distances.
    static bool is_possible(std::span<const SystemView> systems);

    // Chooses places for the systems as they are now. `reach`: no two atoms farther apart are neighbours, now or while
    // the places are kept.
    void choose(std::span<const SystemView> systems, double reach);
    // Whether the places are those of as many systems with as many atoms.
    bool holds(std::span<const SystemView> systems) const;
    // positions[atom][3] of all, one system after the other
    void place(std::span<const SystemView> systems, double* positions) const;

private:
    std::vector<int64_t> atom_counts_;  // [system]
    std::vector<Vec3> shifts_;          // [system]
};

}  // namespace mlff::gpu
