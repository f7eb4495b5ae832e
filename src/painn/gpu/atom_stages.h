// SPDX-License-Identifier: MIT
// Stages for every atom between two sums of messages, and their reverse: the update of one block and the message
// network of the next, or the readout. One kernel forward, one in reverse. docs/painn.md has the formulas. F is the
// number of channels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "gpu/engine/tensor_product.h"
#include "painn/weights/weights.h"

namespace mlff::painn::gpu {

// A matrix in the order in which lanes load it: the depth in steps of kStep, and all columns of a step together; see
// packed_index(). `transposed` is for gradients, from the outputs to the inputs.
template <class Real>
std::vector<Real> pack_matrix(const Linear& linear, bool transposed) {
    using mlff::gpu::kStep;
    const int depth = transposed ? linear.out_width : linear.in_width,
              columns = transposed ? linear.in_width : linear.out_width;
    std::vector<Real> packed(static_cast<size_t>(depth) * static_cast<size_t>(columns));
    for (int k = 0; k < depth; ++k)
        for (int c = 0; c < columns; ++c) {
            const int64_t at =
                int64_t{k / kStep<Real>} * kStep<Real> * columns + mlff::gpu::packed_index<Real>(k % kStep<Real>, c);
            const int out = transposed ? k : c, in = transposed ? c : k;
            packed[static_cast<size_t>(at)] = static_cast<Real>(
                linear
                    .weight[static_cast<size_t>(out) * static_cast<size_t>(linear.in_width) + static_cast<size_t>(in)]);
        }
    return packed;
}

template <class Real>
struct MapView {
    const Real* matrix = nullptr;      // packed
    const Real* transposed = nullptr;  // packed
    const Real* bias = nullptr;
};
template <class Real>
struct NetworkView {
    MapView<Real> hidden, output;
};

// What the forward pass of a block stores for the reverse. All arrays are [atom][...].
template <class Real>
struct KeptUpdate {
    Real* mixed = nullptr;   // [U v_x, U v_y, U v_z, V v_x, V v_y, V v_z][F]; the forward pass reads it too
    Real* hidden = nullptr;  // [F], before the activation
    Real* gates = nullptr;   // [a_sv, a_vv][F]; the last block has no a_vv
};
template <class Real>
struct KeptMessage {
    Real* hidden = nullptr;  // [F], before the activation
    Real* phi_v = nullptr;   // [F]
};

template <class Real>
struct ReadoutView {
    MapView<Real> hidden;            // F -> F / 2
    const double* output = nullptr;  // [F / 2]
    double output_bias = 0;
    const double* element_energies = nullptr;  // [element]
    const double* scales = nullptr;            // [element]
    const int32_t* elements = nullptr;         // [atom]
    Real* kept_hidden = nullptr;               // [atom][F / 2], before the activation
    double* energies = nullptr;                // [atom]: adds to it
    double* descriptors = nullptr;             // [atom][F], or nullptr: not wanted
};

template <class Real>
struct AtomStage {
    int64_t atom_count = 0;
    // true: the readout follows, and vectors are not needed. false: the message network of the next block follows.
    bool is_last = false;
    const Real* scalars = nullptr;  // [atom][F], after the messages were added
    const Real* vectors = nullptr;  // [atom][3][F], after the messages were added
    MapView<Real> mix;              // F -> 2 F
    NetworkView<Real> update;       // 2 F -> F -> 3 F
    KeptUpdate<Real> kept;
    Real* new_scalars = nullptr;  // [atom][F], not in the last block
    Real* new_vectors = nullptr;  // [atom][3][F], not in the last block
    // Next block:
    NetworkView<Real> message;  // F -> F -> 3 F
    KeptMessage<Real> kept_message;
    Real* sent = nullptr;  // [atom][kSentRows][F]
    // Last block:
    ReadoutView<Real> readout;
};
template <class Real>
void update_atoms(int width, const AtomStage<Real>& stage, cudaStream_t stream);

template <class Real>
struct AtomReverse {
    int64_t atom_count = 0;
    bool is_last = false;
    // Of the next block:
    NetworkView<Real> message;
    KeptMessage<Real> kept_message;
    const Real* phi_gradient = nullptr;      // [atom][s, v, u][F]
    const Real* gradient_after = nullptr;    // [atom][kGradientRows][F]; only the scalars are read
    const Real* vectors_gradient = nullptr;  // [atom][3][F], complete
    // Last block:
    ReadoutView<Real> readout;

    MapView<Real> mix;
    NetworkView<Real> update;
    KeptUpdate<Real> kept;
    Real* gradient = nullptr;  // [atom][kGradientRows][F], of scalars and vectors after the messages were added
};
template <class Real>
void reverse_atoms(int width, const AtomReverse<Real>& stage, cudaStream_t stream);

}  // namespace mlff::painn::gpu
