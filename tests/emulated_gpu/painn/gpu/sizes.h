// SPDX-License-Identifier: MIT
// src/painn/gpu/sizes.h for the emulated GPU: tests choose, so that the shapes for many atoms are run with few.
#pragma once

#include <cstdint>

namespace mlff::painn::gpu {

inline int64_t chosen_few_atoms = 512, chosen_some_atoms = 512;
inline int64_t few_atoms_for_messages() { return chosen_few_atoms; }
inline int64_t few_atoms_for_first_messages() { return chosen_few_atoms; }
inline int64_t few_atoms_for_clusters() { return chosen_few_atoms; }
inline int64_t few_atoms_for_updates() { return chosen_few_atoms; }
inline int64_t some_atoms_for_updates() { return chosen_some_atoms; }

}  // namespace mlff::painn::gpu
