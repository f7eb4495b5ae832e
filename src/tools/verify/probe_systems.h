// SPDX-License-Identifier: MIT
// Atoms to try a model with: structures of nature where the model knows their elements, a little shaken so that no
// symmetry hides an error; else distances as in bonds, of elements that it knows. The same for the same elements.
#pragma once

#include <vector>

#include "formats/extxyz.h"

namespace mlff::verify {

// Up to `count` elements of those that the model knows, light and common ones first.
std::vector<int> probe_elements(const std::vector<int>& known, size_t count);

Frame probe_cluster(const std::vector<int>& known);  // about 10 atoms without boundaries
Frame probe_crystal(const std::vector<int>& known);  // 6 to 16 atoms in a skewed cell

// For models that know none of the structures.
Frame random_cluster(const std::vector<int>& elements);
Frame random_crystal(const std::vector<int>& elements);

}  // namespace mlff::verify
