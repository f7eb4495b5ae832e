// SPDX-License-Identifier: GPL-2.0-only
// Chemical symbols, as used in pair_coeff.
#pragma once

#include <string>

namespace mlff_lammps {

// The atomic number; 0 if it is not an element.
int atomic_number(const std::string& symbol);
std::string symbol_of(int atomic_number);  // "?" if there is no such element

}  // namespace mlff_lammps
