// SPDX-License-Identifier: MIT
// What is around one atom, compared without regard to the order of atoms, to place and to rotation.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/system_view.h"

namespace mlff {

class Surroundings {
public:
    static constexpr double kCutoff = 5;       // angstrom: atoms farther away do not count
    static constexpr double kTolerance = 0.1;  // angstrom

    // Throws Error{system} if the neighbours cannot be found.
    Surroundings(const SystemView& system, int64_t atom);

    // Whether the two are of one element, and the distances to their neighbours of each element, sorted, differ by at
    // most kTolerance, one by one. Where one of them has no neighbour any more, the distance is kCutoff.
    bool are_like(const Surroundings& other) const;

private:
    int32_t atomic_number_;
    std::map<int32_t, std::vector<double>> distances_;  // by element of the neighbours, ascending
};

}  // namespace mlff
