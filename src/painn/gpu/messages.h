// SPDX-License-Identifier: MIT
// Messages of one block, summed over the edges of every atom and never stored, and their reverse. Both gather over an
// atom's own edges: nothing is added atomically, so that results repeat bit for bit.
//
// Forward, atom i receives from its neighbours j (x_v v_j = filter_v (phi_v v)_j, so that what is sent is 5 rows of F
// numbers):
//   s_i += sum filter_s phi_s_j;   v_i += sum filter_v (phi_v v)_j + filter_u phi_u_j u
// Reverse, atom j has sent to its neighbours k: these are the same pairs, with the same distances and opposite
// directions, so that one gather of the 4 rows (dE/ds_k, dE/dv_k) gives all that depends on atom j as a sender, and the
// gradients of the edges it sends along. In the first block v = 0 and phi depends on the element alone; its reverse is
// seen from the receiver and gathers nothing.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/step_edges.h"
#include "painn/gpu/edge_stage.h"
#include "painn/gpu/widths.h"

namespace mlff::painn::gpu {

inline constexpr int kSentRows = 5;      // phi_s, phi_u, phi_v v_x, phi_v v_y, phi_v v_z
inline constexpr int kFirstRows = 2;     // phi_s, phi_u of the first block
inline constexpr int kGradientRows = 4;  // dE/ds, dE/dv_x, dE/dv_y, dE/dv_z

// Weights of the filter for the functions of EdgeFunctions.
template <class Real>
struct FilterView;
template <>
struct FilterView<double> {
    const double* weights = nullptr;  // [function][s, v, u][F]
};
template <>
struct FilterView<float> {
    const uint4* weights = nullptr;  // [slice of 32 channels][s, v, u], see packed_filter.h
    float scale = 1;                 // of the weights, a power of two
};

// Rows of F numbers; `width` is F.
template <class Real>
struct MessageStage {
    StepEdges edges;
    EdgeFunctions<Real> functions;
    FilterView<Real> filter;
    bool is_first = false;          // the first block
    const Real* sent = nullptr;     // [atom][kSentRows][F]; first block: [element][kFirstRows][F]
    const Real* scalars = nullptr;  // [atom][F] before; first block: [element][F]
    const Real* vectors = nullptr;  // [atom][3][F] before; not in the first block
    Real* new_scalars = nullptr;    // [atom][F]
    Real* new_vectors = nullptr;    // [atom][3][F]
};
void sum_messages(int width, const MessageStage<double>& stage, cudaStream_t stream);
void sum_messages(int width, const MessageStage<float>& stage, cudaStream_t stream);

template <class Real>
struct MessageReverse {
    StepEdges edges;
    EdgeFunctions<Real> functions;
    FilterView<Real> filter;
    bool is_first = false;
    const Real* sent = nullptr;      // as above
    const Real* gradient = nullptr;  // [atom][kGradientRows][F], of the sums
    double* vector_gradient =
        nullptr;  // [edge][3]: added to. In all but the first block, slot e gets minus the gradient of the reverse of
                  // edge e, which has the opposite vector: gather_forces() takes differences of the two and cannot tell
    // Not in the first block:
    const Real* phi_v = nullptr;       // [atom][F]
    const Real* vectors = nullptr;     // [atom][3][F] before
    Real* phi_gradient = nullptr;      // [atom][s, v, u][F]
    Real* vectors_gradient = nullptr;  // [atom][3][F], of the vectors before, complete
};
void reverse_messages(int width, const MessageReverse<double>& stage, cudaStream_t stream);
void reverse_messages(int width, const MessageReverse<float>& stage, cudaStream_t stream);

}  // namespace mlff::painn::gpu
