// SPDX-License-Identifier: MIT
// Up to how many atoms kernels take the shapes for few: more warps for each atom, fewer atoms for each block of
// threads.
#pragma once

#include <cstdint>

namespace mlff::painn::gpu {

inline constexpr int64_t few_atoms_for_messages() { return 512; }
inline constexpr int64_t few_atoms_for_clusters() { return 1024; }
inline constexpr int64_t few_atoms_for_updates() {
    return 2112;
}  // a block of 16 atoms for each of 132 multiprocessors
inline constexpr int64_t some_atoms_for_updates() { return 8448; }  // a block of 64 atoms for each

}  // namespace mlff::painn::gpu
