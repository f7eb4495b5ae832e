// SPDX-License-Identifier: MIT
// What atoms send to their neighbours in one layer: what all families like e3nn have in common.
#pragma once

#include <optional>
#include <vector>

#include "equivariant/convolution.h"
#include "equivariant/dense_network.h"
#include "equivariant/linear.h"
#include "equivariant/radial_basis.h"

namespace mlff {

// Of all layers. An element is an index into `atomic_numbers`.
struct EdgeModel {
    std::vector<int> atomic_numbers;  // by element
    double cutoff = 0;                // angstrom; edges are strictly shorter
    int max_degree = 0;               // of the harmonics
    RadialEmbedding radial;

    int element_count() const { return static_cast<int>(atomic_numbers.size()); }
    int element_of(int atomic_number) const;  // -1 if unknown to the model
};

// With g = up(h), h the features of atoms, Y the harmonics of the direction from sender to receiver, R the radial
// basis:
//   sum     = sum over edges of convolution(g[sender], Y, radial_network([R, from sender, from receiver]))
//   density = sum over edges of tanh(density_network([...])^2)
//   result  = message(sum)
struct EdgeMessages {
    // The inputs of the networks besides the radial basis: none, the features down(h), or a table by element.
    enum class EdgeInput { radial, features, elements };
    EdgeInput edge_input = EdgeInput::radial;
    std::optional<Linear> down;        // EdgeInput::features
    int edge_width = 0;                // width of each of the two extra inputs
    std::vector<double> sender_table;  // EdgeInput::elements: [element][edge_width]
    std::vector<double> receiver_table;
    Linear up;
    Convolution convolution;
    DenseNetwork radial_network;
    std::optional<DenseNetwork> density_network;
    Linear message;
};

}  // namespace mlff
