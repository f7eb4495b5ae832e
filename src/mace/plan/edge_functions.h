// SPDX-License-Identifier: MIT
// The functions of the distance that a layer has for its edges, evaluated exactly: what tables are made from, and what
// takes their place where they cannot be used.
#pragma once

#include <optional>
#include <span>

#include "mace/functions/radial.h"
#include "mace/plan/batched_network.h"

namespace mlff::mace::plan {

// Where the functions are in a row: the weights of each path, or the network's last hidden layer; then the density.
struct RadialColumns {
    enum class Kind { weights, hidden };
    Kind kind = Kind::weights;
    std::vector<int> path;  // weights: first column of each path
    int hidden_count = 0;  // hidden: functions, and from the next column on the constant 1 if the last layer has a bias
    bool has_constant = false;
    int density = -1;         // -1: this layer has none
    int count = 0;            // padded
    std::vector<int> widths;  // of the blocks that columns lie in: each path, or all hidden functions; the density, in
                              // a block of kRowPadding
};
// Whether columns of hidden functions can stand for the weights.
bool ends_in_linear_layer(const DenseNetwork& network);

RadialColumns columns_of_weights(const Interaction& interaction);
RadialColumns columns_of_hidden(const Interaction& interaction);

struct EdgePlace {
    double distance = 0;
    int sender_element = 0, receiver_element = 0;
};

class EdgeFunctions {
public:
    struct Pass {
        BatchedPass radial, density;
        std::vector<ValueAndSlope> basis, outside;  // outside: the factor of all functions, [edge]
        Buffer<double> gradient;
    };

    EdgeFunctions(const Weights& weights, const Interaction& interaction, const RadialColumns& columns);

    // Fills the networks' input. Where they see features, the caller then adds those at feature_input().
    void start(Pass& pass, std::span<const EdgePlace> edges) const;
    double* feature_input(Pass& pass, int edge) const;  // [sender's, then receiver's]: 2 * edge_width numbers
    // values, slopes (by the distance; nullptr: not wanted): [edge][columns.count]
    void compute(const KernelTable<double>& kernels, Pass& pass, int edge_count, double* values, double* slopes) const;
    // From dE/dvalues of the last edges to dE/d feature_input. Returns that of the first edge, `*stride` from one to
    // the next.
    const double* reverse_features(const KernelTable<double>& kernels, Pass& pass, int edge_count,
                                   const double* values_gradient, int* stride) const;

private:
    const Interaction& interaction_;
    const RadialColumns& columns_;
    RadialEmbedding radial_;
    BatchedNetwork network_;
    std::optional<BatchedNetwork> density_;
};

}  // namespace mlff::mace::plan
