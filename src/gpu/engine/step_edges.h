// SPDX-License-Identifier: MIT
// The edges of a step on the device, and what all models do with them at the end: forces and virials.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mlff::gpu {

// Edges grouped by receiver; see GpuEdges.
struct StepEdges {
    int32_t atom_count = 0;
    int64_t capacity = 0;  // there are never more edges; how many there are, first[atom_count], the device knows
    const int64_t* first = nullptr;     // [atom_count + 1]
    const int32_t* sender = nullptr;    // [edge]
    const double* vector = nullptr;     // [edge][3], receiver to sender, angstrom
    const double* distance = nullptr;   // [edge]
    const int64_t* reverse = nullptr;   // [edge]
    const int32_t* elements = nullptr;  // [atom]

    bool operator==(const StepEdges&) const = default;
};

// forces[atom][3] and virials[atom][9], nullptr where not wanted, from vector_gradient[edge][3] = dE/dvector of an
// atom's edges and their reverses. Those of edges that atoms from `owned_count` on receive are not there, and are no
// part of it.
void gather_forces(const StepEdges& edges, int32_t owned_count, const double* vector_gradient, double* forces,
                   double* virials, cudaStream_t stream);

// *is_shorter becomes 1 if any edge is not longer than `lowest`.
void find_short_edges(const StepEdges& edges, double lowest, int* is_shorter, cudaStream_t stream);

}  // namespace mlff::gpu
