// SPDX-License-Identifier: MIT
// The atoms of a system, as views of the caller's arrays. Nothing here owns memory.
#pragma once

#include <array>
#include <cstdint>

namespace mlff {

using Vec3 = std::array<double, 3>;
using Mat3 = std::array<Vec3, 3>;  // rows

struct SystemView {
    int64_t atom_count = 0;
    const int32_t* atomic_numbers = nullptr;  // [atom_count]
    const double* positions = nullptr;        // [atom_count][3], angstrom
    Mat3 cell{};                              // lattice vectors in rows; zero where there is none
    std::array<bool, 3> periodic{};
    double total_charge = 0;
    double spin_multiplicity = 1;

    bool is_periodic() const { return periodic[0] || periodic[1] || periodic[2]; }
};

}  // namespace mlff
