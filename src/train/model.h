// SPDX-License-Identifier: MIT
// The student of docs/painn.md in LibTorch: atomic energies and their derivatives with respect to edge vectors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/message.h"
#include "train/torch_headers.h"

namespace mlff::train {

struct ModelShape {
    int64_t hidden = 128, blocks = 3, radial = 20;
    double cutoff = 5.0;  // angstrom

    void check() const;  // throws Error{argument} outside the limits of docs/painn.md
    // Input columns of the filters: R radial functions, the fade (instead of a bias), and zeros up to a multiple of 4
    // so that rows are aligned for tensor cores.
    int64_t feature_count() const { return (radial + 1 + 3) / 4 * 4; }
};

// Per-element constants that are not trained.
struct ElementTable {
    std::vector<int> atomic_numbers;      // ascending
    std::vector<double> atomic_energies;  // eV
    std::vector<double> scales;           // eV
    std::vector<double> repulsion_radii;  // angstrom; empty: no repulsion
    std::vector<double> closest;          // [element][element], angstrom; empty: distances are not modified

    int index_of(int atomic_number) const;  // -1 if unknown
    int64_t size() const { return static_cast<int64_t>(atomic_numbers.size()); }
};

// The trained numbers, in one buffer, so that the optimiser updates all at once. Matrices are [in][out] here ([out][in]
// in the file), so that their gradients come out of the products in the same order.
struct ParameterSlot {
    std::string name;  // "blocks.0.message.hidden.weight"
    std::vector<int64_t> shape;
    int64_t offset = 0, size = 0;
    bool decays = false;  // has weight decay: matrices only
};
struct ParameterLayout {
    std::vector<ParameterSlot> slots;
    int64_t total = 0;
};
ParameterLayout parameter_layout(const ModelShape& shape, int64_t element_count);

// Views of one buffer by name; autograd leaves if `trainable`.
class Parameters {
public:
    Parameters(const ModelShape& shape, const ParameterLayout& layout, const at::Tensor& buffer, bool trainable);

    struct Linear {
        at::Tensor weight, bias;
    };
    struct Block {
        at::Tensor filter, mix;
        Linear message_hidden, message_output, update_hidden, update_output;
    };
    at::Tensor embedding;
    std::vector<Block> blocks;
    Linear readout_hidden, readout_output;

    std::vector<at::Tensor> all;  // in the order of the layout
};

// Xavier uniform for matrices, standard normal for the embedding, zero for biases.
at::Tensor initial_parameters(const ModelShape& shape, const ParameterLayout& layout, uint64_t seed);

// Atoms and edges of a batch of frames, in one index range. An atom of element -1 is padding and has no energy. An edge
// at or beyond the cutoff carries no message.
struct AtomGraph {
    at::Tensor element_one_hot;  // [atoms][elements]
    at::Tensor scale;            // [atoms][1]
    EdgeLists lists;
    at::Tensor direction;                 // [edges][3], unit vectors
    at::Tensor inverse_distance;          // [edges][1]
    at::Tensor features, feature_slopes;  // [edges][feature_count], and d/d(distance) of it
};

// sin(n pi d / c) / d * fade(d) for n = 1..R, then fade(d), then zeros; fade = 0 from the cutoff on. If the elements
// have a `closest`, d is the modified distance.
class EdgeFunctions {
public:
    EdgeFunctions(const ModelShape& shape, const ElementTable& elements, const at::TensorOptions& options);
    // Fills in direction, inverse_distance, features and feature_slopes. Elements and edge lists must be set.
    void compute(const at::Tensor& vectors, AtomGraph& graph) const;

private:
    struct Seen {
        at::Tensor distance, slope;  // [edges][1]
    };
    Seen see(const at::Tensor& distance, const AtomGraph& graph) const;

    double cutoff_;
    at::Tensor frequency_, phase_, over_distance_, constant_;  // [1][feature_count]
    at::Tensor closest_;                                       // [elements][elements], or undefined
};

struct EnergyAndGradient {
    at::Tensor atom_energy;    // [atoms][1], without atomic energies and repulsion
    at::Tensor edge_gradient;  // [edges][3], dE/d(edge vector), with independent edges
};
// `differentiable`: the gradient can itself be differentiated with respect to the parameters.
EnergyAndGradient energy_and_gradient(const Parameters& parameters, const AtomGraph& graph, bool differentiable);

// -dE/dx, [atoms][3]: an edge vector is x[sender] - x[receiver].
at::Tensor forces_of(const at::Tensor& edge_gradient, const AtomGraph& graph);

}  // namespace mlff::train
