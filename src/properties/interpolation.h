// SPDX-License-Identifier: MIT
// The image dependent pair potential (Smidstrup, Pedersen, Stokbro and Jonsson 2014): images between two structures
// whose distances between atoms change evenly, so that no atoms run into each other.
#pragma once

#include <vector>

#include "properties/path.h"

namespace mlff {

// Begins with straight lines between `first` and `last`, which are connected. Images of `atoms`' cell.
std::vector<Image> pair_potential_path(const Image& first, const Image& last, size_t count, const Particles& atoms);

}  // namespace mlff
