// SPDX-License-Identifier: MIT
// Systems to test a model with. Real structures if the model knows their elements, slightly displaced so that no
// symmetry hides an error; otherwise random structures with bond-like distances. The same elements give the same
// systems.
#pragma once

#include <vector>

#include "formats/extxyz.h"

namespace mlff::verify {

// Up to `count` elements that the model knows, light and common ones first.
std::vector<int> probe_elements(const std::vector<int>& known, size_t count);

Frame probe_cluster(const std::vector<int>& known);  // about 10 atoms, not periodic
Frame probe_crystal(const std::vector<int>& known);  // 6 to 16 atoms in a skewed cell

// For models that know the elements of none of the structures.
Frame random_cluster(const std::vector<int>& elements);
Frame random_crystal(const std::vector<int>& elements);

}  // namespace mlff::verify
