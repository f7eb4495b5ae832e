// SPDX-License-Identifier: MIT
// Stages for every atom between two sums of messages, and their reverse: the update of one block and the message
// network of the next, or the readout. One kernel forward, one in reverse. docs/painn.md has the formulas. F is the
// number of channels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "gpu/engine/row_product.h"
#include "painn/weights/weights.h"

namespace mlff::painn::gpu {

// The matrix of a map, [depth][columns]. `transposed` is for gradients, from the outputs to the inputs.
inline std::vector<double> matrix_of(const Linear& linear, bool transposed) {
    if (transposed) return linear.weight;
    const auto depth = static_cast<size_t>(linear.in_width), columns = static_cast<size_t>(linear.out_width);
    std::vector<double> matrix(depth * columns);
    for (size_t k = 0; k < depth; ++k)
        for (size_t c = 0; c < columns; ++c) matrix[k * columns + c] = linear.weight[c * depth + k];
    return matrix;
}

// A matrix in the order in which lanes of a cluster load it: the depth in steps of kStep, and all columns of a step
// together; see packed_index().
inline std::vector<float> pack_for_clusters(const std::vector<double>& matrix, int depth, int columns) {
    using mlff::gpu::kStep;
    std::vector<float> packed(matrix.size());
    for (int k = 0; k < depth; ++k)
        for (int c = 0; c < columns; ++c) {
            const int64_t at = int64_t{k / kStep<float>} * kStep<float> * columns +
                               mlff::gpu::packed_index<float>(k % kStep<float>, c);
            packed[static_cast<size_t>(at)] = static_cast<float>(
                matrix[static_cast<size_t>(k) * static_cast<size_t>(columns) + static_cast<size_t>(c)]);
        }
    return packed;
}

template <class Stored>
struct MapView {
    mlff::gpu::RowMatrix<Stored> rows, transposed_rows;
    const mlff::gpu::RealOf<Stored>* bias = nullptr;
    // As pack_for_clusters() orders them; not in double precision.
    const float* matrix = nullptr;
    const float* transposed = nullptr;
};
template <class Stored>
struct NetworkView {
    MapView<Stored> hidden, output;
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

template <class Stored>
struct ReadoutView {
    using Real = mlff::gpu::RealOf<Stored>;
    MapView<Stored> hidden;          // F -> F / 2
    const double* output = nullptr;  // [F / 2]
    double output_bias = 0;
    const double* element_energies = nullptr;  // [element]
    const double* scales = nullptr;            // [element]
    const int32_t* elements = nullptr;         // [atom]
    Real* kept_hidden = nullptr;               // [atom][F / 2], before the activation
    double* energies = nullptr;                // [atom]: adds to it
    double* descriptors = nullptr;             // [atom][F], or nullptr: not wanted
};

template <class Stored>
struct AtomStage {
    using Real = mlff::gpu::RealOf<Stored>;
    int64_t atom_count = 0;
    // true: the readout follows, and vectors are not needed. false: the message network of the next block follows.
    bool is_last = false;
    const Real* scalars = nullptr;  // [atom][F], after the messages were added
    const Real* vectors = nullptr;  // [atom][3][F], after the messages were added
    MapView<Stored> mix;            // F -> 2 F
    NetworkView<Stored> update;     // 2 F -> F -> 3 F
    KeptUpdate<Real> kept;
    Real* new_scalars = nullptr;  // [atom][F], not in the last block
    Real* new_vectors = nullptr;  // [atom][3][F], not in the last block
    // Next block:
    NetworkView<Stored> message;  // F -> F -> 3 F
    KeptMessage<Real> kept_message;
    Stored* sent = nullptr;  // [atom][kSentRows][F]
    // Last block:
    ReadoutView<Stored> readout;
};
template <class Stored>
void update_atoms(int width, const AtomStage<Stored>& stage, cudaStream_t stream);

template <class Stored>
struct AtomReverse {
    using Real = mlff::gpu::RealOf<Stored>;
    int64_t atom_count = 0;
    bool is_last = false;
    // Of the next block:
    NetworkView<Stored> message;
    KeptMessage<Real> kept_message;
    const Real* phi_gradient = nullptr;      // [atom][s, v, u][F]
    const Real* gradient_after = nullptr;    // [atom][kGradientRows][F]; only the scalars are read
    const Real* vectors_gradient = nullptr;  // [atom][3][F], complete
    // Last block:
    ReadoutView<Stored> readout;

    MapView<Stored> mix;
    NetworkView<Stored> update;
    KeptUpdate<Real> kept;
    Real* gradient = nullptr;  // [atom][kGradientRows][F], of scalars and vectors after the messages were added
    // The same for neighbours to gather. Not written where Real is Stored, or if it is nullptr.
    Stored* gathered = nullptr;
};
template <class Stored>
void reverse_atoms(int width, const AtomReverse<Stored>& stage, cudaStream_t stream);

}  // namespace mlff::painn::gpu
