// SPDX-License-Identifier: MIT
// What is computed once for every edge: functions of the distance, the direction, and the repulsion.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/four.h"
#include "gpu/engine/step_edges.h"
#include "gpu/engine/stored_number.h"
#include "painn/functions/repulsion_pairs.h"

namespace mlff::painn::gpu {

using mlff::gpu::StepEdges;

// How functions of edges are stored. In double precision: as plain numbers, padded to groups of four. In single
// precision: for tensor cores, each number as the sum of two numbers of half precision, so that four functions take 16
// bytes, padded to half steps of 8 functions. See packed_filter.h. As halves: in order, padded in the same way.
template <class Stored>
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
template <>
struct FunctionLayout<__half> {
    using Group = uint2;
    static constexpr int group_count(int radial_count) { return FunctionLayout<float>::group_count(radial_count); }
};
// A factor of values stored in single precision or as halves: it keeps low halves above the smallest number of half
// precision.
inline constexpr float kValueScale = 16;

// The functions are the radial basis times the fade, then the fade alone (for the bias of the filter), then zeros.
template <class Stored>
struct EdgeFunctions {
    using Real = mlff::gpu::RealOf<Stored>;
    using Group = typename FunctionLayout<Stored>::Group;
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
    double* energies = nullptr;         // [atom]: writes the repulsion
    double* vector_gradient = nullptr;  // [edge][3]: writes that of the repulsion; or nullptr: not wanted
    int* has_short_edge = nullptr;      // set to 1 if two atoms are at the same place
};

template <class Stored>
void compute_edges(const EdgeStage& stage, const EdgeFunctions<Stored>& functions, cudaStream_t stream);

}  // namespace mlff::painn::gpu
