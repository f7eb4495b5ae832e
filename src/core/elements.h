// SPDX-License-Identifier: MIT
// The periodic table: symbols, covalent radii and masses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mlff {

inline constexpr int kMaxAtomicNumber = 118;

// "H" for 1. Throws Error{system} for numbers outside 1..118.
std::string_view element_symbol(int atomic_number);

// 1 for "H"; 0 if there is no such symbol. Case matters.
int atomic_number_of(std::string_view symbol);

// Single-bond covalent radius in angstrom (Cordero et al., Dalton Trans. 2008, 2832), known for 1..96; 0 beyond.
double covalent_radius(int atomic_number);

// Atomic mass in u. Throws Error{system} for numbers outside 1..118.
double atomic_mass(int atomic_number);

// "H C N O" for {1, 6, 7, 8}.
std::string symbols_text(const std::vector<int>& atomic_numbers);

}  // namespace mlff
