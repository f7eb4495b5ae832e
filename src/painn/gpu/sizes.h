// SPDX-License-Identifier: MIT
// Up to these numbers of atoms, kernels use shapes for few atoms: more warps per atom, fewer atoms per thread block.
#pragma once

#include <cstdint>

namespace mlff::painn::gpu {

inline constexpr int64_t few_atoms_for_messages() { return 512; }
inline constexpr int64_t few_atoms_for_first_messages() { return 2112; }  // 132 multiprocessors, 16 atoms each
inline constexpr int64_t few_atoms_for_clusters() { return 1024; }
inline constexpr int64_t few_atoms_for_updates() { return 2112; }   // 132 multiprocessors, a block of 16 atoms each
inline constexpr int64_t some_atoms_for_updates() { return 8448; }  // the same with blocks of 64 atoms

}  // namespace mlff::painn::gpu
