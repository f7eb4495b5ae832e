// SPDX-License-Identifier: GPL-2.0-only
// Chemical symbols as pair_coeff has them.
#pragma once

#include <string>

namespace mlff_lammps {

// The atomic number; 0 if it is no element.
int atomic_number(const std::string& symbol);
std::string symbol_of(int atomic_number);  // "?" if it is none

}  // namespace mlff_lammps
