// SPDX-License-Identifier: MIT
// The edges of a step on the device, and the last stage of all models: forces and virials.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::gpu {

// Edges grouped by receiver; see GpuEdges.
struct StepEdges {
    int32_t atom_count = 0;
    int64_t capacity = 0;  // an upper bound; the number of edges is first[atom_count], which only the device knows
    const int64_t* first = nullptr;     // [atom_count + 1]
    const int32_t* sender = nullptr;    // [edge]
    const double* vector = nullptr;     // [edge][3], receiver to sender, angstrom
    const double* distance = nullptr;   // [edge]
    const int64_t* reverse = nullptr;   // [edge]
    const int32_t* elements = nullptr;  // [atom]

    bool operator==(const StepEdges&) const = default;
};

// Writes forces[atom][3] and virials[atom][9], unless nullptr. vector_gradient[edge][3] is dE/dvector. An atom sums
// over its edges and their reverses. Atoms from `owned_count` on are ghosts: the edges that they receive have no
// gradient and count as zero.
void gather_forces(const StepEdges& edges, int32_t owned_count, const double* vector_gradient, double* forces,
                   double* virials, cudaStream_t stream);

}  // namespace mlff::gpu
