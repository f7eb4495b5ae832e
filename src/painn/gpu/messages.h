// SPDX-License-Identifier: MIT
// Sums of the messages of one block over the edges of every atom, and the reverse. Single messages are never stored.
// Both directions gather over an atom's own edges. Nothing is added atomically, so results repeat bit for bit.
//
// Forward, atom i receives from its neighbours j. A sender provides 5 rows of F numbers: phi_s, phi_u, phi_v v.
//   s_i += sum over j of filter_s phi_s_j
//   v_i += sum over j of filter_v (phi_v v)_j + filter_u phi_u_j u
//
// Reverse, atom j has sent to its neighbours k. These are the same pairs, with the same distances and opposite
// directions. So one gather of 4 rows (dE/ds_k, dE/dv_k) gives all gradients of atom j as a sender, and those of the
// edges along which it sends.
//
// The first block has its own sums: see first_messages.h.
#pragma once

#include <cuda_runtime.h>

#include "gpu/engine/step_edges.h"
#include "gpu/engine/stored_number.h"
#include "painn/gpu/edge_stage.h"
#include "painn/gpu/widths.h"

namespace mlff::painn::gpu {

inline constexpr int kSentRows = 5;      // phi_s, phi_u, phi_v v_x, phi_v v_y, phi_v v_z
inline constexpr int kGradientRows = 4;  // dE/ds, dE/dv_x, dE/dv_y, dE/dv_z

// Weights of the filter for the functions of EdgeFunctions.
template <class Stored>
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
template <>
struct FilterView<__half> {
    const uint4* weights = nullptr;
    float scale = 1;
};

// `width` is F, the number of channels. Rows that are gathered are `Stored`.
template <class Stored>
struct MessageStage {
    using Real = mlff::gpu::RealOf<Stored>;
    StepEdges edges;
    EdgeFunctions<Stored> functions;
    FilterView<Stored> filter;
    const Stored* sent = nullptr;   // [atom][kSentRows][F]
    const Real* scalars = nullptr;  // [atom][F], before the messages
    const Real* vectors = nullptr;  // [atom][3][F], before the messages
    Real* new_scalars = nullptr;    // [atom][F]
    Real* new_vectors = nullptr;    // [atom][3][F]
};
void sum_messages(int width, const MessageStage<double>& stage, cudaStream_t stream);
void sum_messages(int width, const MessageStage<float>& stage, cudaStream_t stream);
void sum_messages(int width, const MessageStage<__half>& stage, cudaStream_t stream);

template <class Stored>
struct MessageReverse {
    using Real = mlff::gpu::RealOf<Stored>;
    StepEdges edges;
    EdgeFunctions<Stored> functions;
    FilterView<Stored> filter;
    const Stored* sent = nullptr;      // as above
    const Stored* gathered = nullptr;  // [atom][kGradientRows][F], gradients of the sums
    const Real* gradient = nullptr;    // the same of own atoms; where Real is Stored, the same array
    // [edge][3]: adds to it. Entry e gets minus the gradient of the reverse of edge e, which has the opposite vector.
    // gather_forces() only uses the difference of the two, so the result is the same.
    double* vector_gradient = nullptr;
    const Real* phi_v = nullptr;       // [atom][F]
    const Real* vectors = nullptr;     // [atom][3][F], before the messages
    Real* phi_gradient = nullptr;      // [atom][s, v, u][F]
    Real* vectors_gradient = nullptr;  // [atom][3][F], of the vectors before the messages, complete
};
void reverse_messages(int width, const MessageReverse<double>& stage, cudaStream_t stream);
void reverse_messages(int width, const MessageReverse<float>& stage, cudaStream_t stream);
void reverse_messages(int width, const MessageReverse<__half>& stage, cudaStream_t stream);

}  // namespace mlff::painn::gpu
