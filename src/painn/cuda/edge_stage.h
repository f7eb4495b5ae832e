// SPDX-License-Identifier: MIT
// What is computed once for every edge: functions of its distance, its direction, the repulsion.
#pragma once

#include <cuda_runtime.h>

#include "cuda_engine/step_edges.h"
#include "painn/cuda/edge_functions.h"

namespace mlff::painn::cuda {

using mlff::cuda::StepEdges;

// [edge]; functions are those of padded_function_count().
template <class Real>
struct EdgeFunctions {
    Real* value = nullptr;      // [edge][function_count]
    Real* slope = nullptr;      // [edge][function_count], or nullptr: not wanted
    Real* direction = nullptr;  // [edge][4]: x, y, z of the unit vector from receiver to sender, and 1 / distance
    int function_count = 0;
};

struct EdgeStage {
    StepEdges edges;
    double cutoff = 0;  // angstrom
    int radial_count = 0;
    const PairRepulsion* repulsion = nullptr;  // [element][element], or nullptr: none
    int element_count = 0;
    double* energies = nullptr;         // [atom]: set to the repulsion
    double* vector_gradient = nullptr;  // [edge][3]: set to that of the repulsion; or nullptr: not wanted
    int* has_short_edge = nullptr;      // becomes 1 if atoms are at the same place
};

template <class Real>
void compute_edges(const EdgeStage& stage, const EdgeFunctions<Real>& functions, cudaStream_t stream);

}  // namespace mlff::painn::cuda
