// SPDX-License-Identifier: MIT
// What is computed once for every edge: functions of its distance, its direction, the repulsion.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/four.h"
#include "gpu/engine/step_edges.h"
#include "painn/functions/repulsion_pairs.h"

namespace mlff::painn::gpu {

using mlff::gpu::StepEdges;

// How functions of edges are stored. In double precision as they are, padded to whole groups of four; in single
// precision as tensor cores take them, each number as the sum of two of half precision: four functions in 16 bytes,
// padded to whole halves of a step of 16 functions. See packed_filter.h.
template <class Real>
struct FunctionLayout;
template <>
struct FunctionLayout<double> {
    using Group = mlff::gpu::Four<double>;
    static constexpr int group_count(int radial_count) { return (radial_count + 1 + 3) / 4; }
};
template <>
struct FunctionLayout<float> {
    using Group = uint4;
    static constexpr int group_count(int radial_count) { return (radial_count + 1 + 7) / 8 * 2; }
};
inline constexpr float kValueScale = 16;  // of what is stored in single precision: the smallest parts of numbers stay
                                          // above the smallest of half precision

// The functions: the radial basis with its fade, then the fade alone (which the bias of the filter multiplies), then
// zeros.
template <class Real>
struct EdgeFunctions {
    using Group = typename FunctionLayout<Real>::Group;
    Group* value = nullptr;     // [edge][group_count]
    Group* slope = nullptr;     // [edge][group_count], or nullptr: not wanted
    Real* direction = nullptr;  // [edge][4]: x, y, z of the unit vector from receiver to sender, and 1 / distance
    int group_count = 0;
};

struct EdgeStage {
    StepEdges edges;
    double cutoff = 0;  // angstrom
    int radial_count = 0;
    const RepulsionPair* repulsion = nullptr;  // [element][element], or nullptr: none
    const double* closest = nullptr;           // [element][element], see near_field.h; or nullptr: none
    int element_count = 0;
    double* energies = nullptr;         // [atom]: set to the repulsion
    double* vector_gradient = nullptr;  // [edge][3]: set to that of the repulsion; or nullptr: not wanted
    int* has_short_edge = nullptr;      // becomes 1 if atoms are at the same place
};

template <class Real>
void compute_edges(const EdgeStage& stage, const EdgeFunctions<Real>& functions, cudaStream_t stream);

}  // namespace mlff::painn::gpu
