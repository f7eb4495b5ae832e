// SPDX-License-Identifier: MIT
// Energies of atoms, and sums of energies and virials over systems. The order of summation depends only on the numbers
// of atoms.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::gpu {

inline constexpr int kAtomsPerChunk = 1024;
inline constexpr int kTotalCount = 10;  // energy, virial[9]

// Atoms begin, ..., end - 1, all of one system.
struct AtomChunk {
    int32_t begin = 0, end = 0;
};
struct SystemsView {
    const AtomChunk* chunks = nullptr;
    const int32_t* first_chunk = nullptr;  // [system_count + 1]
    int32_t chunk_count = 0, system_count = 0;
    int32_t owned_count = 0;  // atoms from there on are ghosts; other domains count their energies

    bool operator==(const SystemsView&) const = default;
};

// Energies that depend on the element alone.
struct ElementEnergy {
    double alone = 0;      // E0
    double embedding = 0;  // added to the energy of the system, but not to that of the atom
    double scale = 1;      // of what the model computes, besides EnergyView::scale
};
struct EnergyView {
    const int32_t* elements = nullptr;          // [atom]
    const ElementEnergy* of_element = nullptr;  // [element]
    double scale = 1, shift = 0;
};

__device__ __forceinline__ double energy_scale(const EnergyView& view, int64_t atom) {
    return view.scale * view.of_element[view.elements[atom]].scale;
}
// The energy of an atom, from the sum of what the model computes for it.
__device__ __forceinline__ double finished_energy(const EnergyView& view, int64_t atom, double sum) {
    return view.of_element[view.elements[atom]].alone + (energy_scale(view, atom) * sum + view.shift);
}

// What is summed over systems.
struct AtomResults {
    SystemsView systems;
    EnergyView energy;
    const double* energies = nullptr;  // [atom], finished
    const double* virials = nullptr;   // [atom][9], or nullptr: their sums are 0
};

// Writes totals[system][kTotalCount]. `partial` is scratch memory, [chunk][kTotalCount].
void sum_over_systems(const AtomResults& atoms, double* partial, double* totals, cudaStream_t stream);

// stress[6] = -virial / volume, in the order of mlff_result.stress
void write_stress(const double* virial, double volume, double* stress, cudaStream_t stream);

}  // namespace mlff::gpu
