// SPDX-License-Identifier: MIT
// The radial functions of a layer, evaluated exactly. Tables are made from them, and they are used directly where there
// is no table.
#pragma once

#include <optional>
#include <span>

#include "equivariant/edge_messages.h"
#include "equivariant/plan/batched_network.h"

namespace mlff::equivariant {

// The columns of a row of radial functions: the weights of each path, or the network's last hidden layer; then the
// density.
struct RadialColumns {
    enum class Kind { weights, hidden };
    Kind kind = Kind::weights;
    std::vector<int> path;      // Kind::weights: first column of each path
    int hidden_count = 0;       // Kind::hidden: number of functions
    bool has_constant = false;  // Kind::hidden: the next column is the constant 1, because the last layer has a bias
    int density = -1;           // column of the density; -1: the layer has none
    int count = 0;              // of columns, padded
    // Widths of the blocks of columns: one block for each path, or one for all hidden functions; then one of
    // kRowPadding for the density.
    std::vector<int> widths;
};
// If so, columns_of_hidden() can replace columns_of_weights().
bool ends_in_linear_layer(const DenseNetwork& network);

RadialColumns columns_of_weights(const EdgeMessages& messages);
RadialColumns columns_of_hidden(const EdgeMessages& messages);

struct EdgePlace {
    double distance = 0;
    int sender_element = 0, receiver_element = 0;
    bool is_above_onset = true;  // which formula of a cutoff function with an onset to use
};

class EdgeFunctions {
public:
    struct Pass {
        BatchedPass radial, density;
        std::vector<double> distances;
        std::vector<ValueAndSlope> basis, outside;  // outside[edge]: cutoff that multiplies all functions, or 1
        Buffer<double> gradient;
    };

    EdgeFunctions(const EdgeModel& model, const EdgeMessages& messages, const RadialColumns& columns);

    double onset() const { return radial_.cutoff.onset; }  // of the cutoff function; 0: none

    // Fills the input of the networks. If they take features of atoms, the caller must write these to feature_input().
    void start(Pass& pass, std::span<const EdgePlace> edges) const;
    double* feature_input(Pass& pass, int edge) const;  // edge_width numbers of the sender, then of the receiver
    // `values` and `slopes` (by the distance; nullptr: not wanted) are [edge][columns.count].
    void compute(const KernelTable<double>& kernels, Pass& pass, int edge_count, double* values, double* slopes) const;
    // Takes dE/dvalues of the last compute() and returns dE/d feature_input of the first edge. The next edge is
    // `*stride` numbers further.
    const double* reverse_features(const KernelTable<double>& kernels, Pass& pass, int edge_count,
                                   const double* values_gradient, int* stride) const;

private:
    const EdgeMessages& messages_;
    const RadialColumns& columns_;
    RadialEmbedding radial_;
    BatchedNetwork network_;
    std::optional<BatchedNetwork> density_;
};

}  // namespace mlff::equivariant
