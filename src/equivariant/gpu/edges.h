// SPDX-License-Identifier: MIT
// Stages for every edge: harmonics, pair repulsion, and their gradients.
#pragma once

#include <cuda_runtime.h>

#include "equivariant/edge_messages.h"
#include "equivariant/gpu/messages.h"
#include "gpu/runtime/device_buffer.h"

namespace mlff::equivariant::gpu {

// The repulsion of pairs that MACE models may have, for kernels. `is_there` is false if the model has none.
struct RepulsionView {
    bool is_there = false;
    double coefficients[4] = {};
    double prefactor = 0, exponent = 0;
    int cutoff_exponent = 0;
    const double* radii = nullptr;           // [element]
    const double* atomic_numbers = nullptr;  // [element]
    double scale = 0;                        // of the energy
};

struct EdgeGeometry {
    const double* vector = nullptr;    // [edge][3]
    const int64_t* reverse = nullptr;  // [edge]
    int max_degree = 0;

    bool operator==(const EdgeGeometry&) const = default;
};

// Sets *is_shorter to 1 if any edge is not longer than `lowest`.
struct ShortEdges {
    double lowest = 0;
    int* is_shorter = nullptr;
};
template <class Real>
void compute_harmonics(const EdgesView<Real>& edges, const EdgeGeometry& geometry, const ShortEdges& short_edges,
                       Real* harmonics, cudaStream_t stream);

// energies[atom] = sum over its edges
template <class Real>
void compute_repulsion(const EdgesView<Real>& edges, const RepulsionView& repulsion, double* energies,
                       cudaStream_t stream);

// vector_gradient[edge][3] = dE/dvector from `gradients` and the repulsion.
template <class Real>
void reverse_edges(const EdgesView<Real>& edges, const EdgeGeometry& geometry, const EdgeGradientsView<Real>& gradients,
                   const RepulsionView& repulsion, double* vector_gradient, cudaStream_t stream);

}  // namespace mlff::equivariant::gpu
