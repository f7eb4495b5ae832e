// SPDX-License-Identifier: MIT
// A model of the NequIP family (SevenNet, Nequix) as plain numbers, ready to evaluate with one of its heads: one normal
// form for all files. Everything is in double precision; numbers stored in single precision keep their rounded values.
//
// Normalisations, averages of neighbours and what a head adds are parts of the weights. Harmonics are those of the
// direction from sender to receiver; where a file has the opposite one, couplings have the sign (-1)^l.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "equivariant/edge_messages.h"
#include "equivariant/gate.h"
#include "formats/module_tree.h"

namespace mlff::nequip {

// Every block of features times scale_u / sqrt(s + epsilon),
//   s = sum over blocks, copies u and components of x^2 / (2l+1)^2, divided by the number of blocks.
struct Norm {
    std::vector<double> scale;  // of each copy of each block
    double epsilon = 0;
};

// features = gate(norm(message(sum over edges) + self_connection[element](features)))
// `message` maps to gate.in, as does self_connection. Biases are those of `up` and `message`.
struct Layer : EdgeMessages {
    Linear self_connection;
    std::optional<Norm> norm;
    Gate gate;
};

struct Weights : EdgeModel {
    Irreps first_irreps;                 // of the first features: scalars
    std::vector<double> first_features;  // [element][first_irreps.dimension()]
    std::vector<Layer> layers;
    // Energy of an atom = shift[element] + scale[element] * readout(its scalars (0e) after the last layer).
    DenseNetwork readout;
    std::vector<double> scale, shift;  // [element], eV

    int descriptor_count() const;  // invariant features (0e), summed over layers
};

// What a file says, without its weights.
struct Description {
    std::string class_name;  // "SevenNet" or "Nequix"
    std::string version;     // of the package that wrote it; "": it does not say
    std::vector<int> elements;
    std::vector<std::string> heads;  // never empty; "Default" if there are no modalities
    double cutoff = 0;
    std::string cutoff_function;  // "polynomial 6", "XPLOR from 4.5"
    int basis_count = 0;
    int max_degree = 0;
    std::vector<std::string> layer_irreps;      // of the features before the first layer and after each
    std::vector<std::string> self_connections;  // of each layer: "nequip", "linear"
    std::vector<int> hidden_widths;             // of radial networks
    bool is_parity = false;
    DType dtype = DType::float32;
    int64_t parameter_count = 0;
};

// Whether the tree is that of such a file (formats/module_tree.h); everything else is left to other families.
bool is_nequip_module(const Module& root);
// Both throw Error{unsupported} that names the option that cannot be run, or Error{format} that names the faulty
// tensor.
Description describe(const Module& root);
Weights load_weights(const Module& root, int head);

}  // namespace mlff::nequip
