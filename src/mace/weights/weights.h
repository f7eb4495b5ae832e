// SPDX-License-Identifier: MIT
// A MACE model as plain numbers, ready to evaluate: one normal form for all versions and layouts of the file.
// Everything is in double precision; numbers stored in single precision keep their rounded values.
//
// An element is an index into `atomic_numbers`. Features are stored block by block, [copy][component] within a block
// (Irreps).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "equivariant/edge_messages.h"
#include "equivariant/gate.h"
#include "formats/module_tree.h"

namespace mlff::mace {

inline constexpr int kMaxCorrelation = 4;

// Ziegler-Biersack-Littmark repulsion: per directed edge, half of
//   14.3996 Z_i Z_j / r phi(r / a) f(r),  a = prefactor 0.529 / (Z_i^exponent + Z_j^exponent),
//   phi(x) = sum_k c_k exp(-e_k x), f the cutoff with radius R_i + R_j.
struct PairRepulsion {
    std::array<double, 4> coefficients{};
    double prefactor = 0;
    double exponent = 0;
    int cutoff_exponent = 0;
    std::vector<double> radii;  // [element]
};

// silu(projection [embedding_1(value_1), ...]) is added to the first features of every atom.
struct JointEmbedding {
    enum class Quantity { total_charge, total_spin };
    struct Input {
        Quantity quantity = Quantity::total_charge;
        bool categorical = true;
        int width = 0;
        int offset = 0;  // categorical: the row is value + offset
        int row_count = 0;
        std::vector<double> table;  // [row_count][width]
        DenseNetwork network;       // not categorical: applied to the value itself
    };
    std::vector<Input> inputs;
    DenseNetwork projection;
};

// All interaction blocks in one form: messages, and with g = up(h)
//   m      = message(sum) / (divisor_constant + divisor_density * density)
//   m      = after_gate(gate(m + residual(g)))   if there is a gate
//   m      = message_skip[element](m)            if there is one
//   skip   = skip[element](h)                    if there is one: added to the features after the product
struct Interaction : EdgeMessages {
    struct Gated {
        Linear residual;
        Gate gate;
        Linear after;
    };
    double divisor_constant = 1;
    double divisor_density = 0;
    std::optional<Gated> gated;
    std::optional<Linear> message_skip;
    std::optional<Linear> skip;

    const Irreps& message_irreps() const;  // of m
};

// B[M][u] = sum over terms of row M of  coefficient * weights[element][path][u] * A[i1][u] * ... * A[i_order][u].
// A row is one component (l, m) of all channels. Terms that differ only in the order of the i are merged.
struct SymmetricContraction {
    struct Term {
        int path = 0;
        int order = 0;
        std::array<int, kMaxCorrelation> rows{};  // the first `order` are used, ascending
        double coefficient = 0;
    };
    Irreps in;  // every block has `channel_count` copies
    Irreps out;
    int channel_count = 0;
    int in_row_count = 0;
    int out_row_count = 0;
    int element_count = 1;  // 1: the same weights for all elements
    int path_count = 0;
    std::vector<double> weights;  // [element_count][path_count][channel_count]
    std::vector<Term> terms;      // by row M
    std::vector<int> first_term;  // [out_row_count + 1]
};

struct Layer {
    Interaction interaction;
    SymmetricContraction contraction;
    Linear linear;          // applied to the contraction
    bool uses_skip = true;  // adds the interaction's skip, if there is one
};

// energy = column `head` of  last(activation(middle(activation(first(h)))));  only `first` for a linear readout.
// With several heads, the hidden layer has one equal slice per head; all slices but the selected head's are zeroed.
struct Readout {
    int layer = 0;  // the layer whose output it reads
    Linear first;
    Activation activation;
    std::optional<Linear> middle;
    std::optional<Linear> last;
    int head_slices = 1;

    int column_count() const { return (last ? *last : first).out.dimension(); }
};

struct Weights : EdgeModel {
    std::string class_name;              // "ScaleShiftMACE"
    std::vector<std::string> heads;      // never empty
    int fixed_head = -1;                 // the only head of a LAMMPS file; -1: not fixed
    int channel_count = 0;               // of the first features
    std::vector<double> node_embedding;  // [element][channel_count]
    std::optional<JointEmbedding> joint_embedding;
    std::optional<Linear> embedding_readout;
    std::optional<PairRepulsion> repulsion;
    std::vector<Layer> layers;
    std::vector<Readout> readouts;
    std::vector<double> atomic_energies;  // [head][element], eV
    std::vector<double> scale;            // [head]; 1 and 0 for a plain MACE
    std::vector<double> shift;

    int head_count() const { return static_cast<int>(heads.size()); }
    int descriptor_count() const;  // invariant features (0e), summed over layers
};

// Throws Error{unsupported} that names the class or option that cannot be run, or Error{format} that names the faulty
// tensor.
Weights load_weights(const Module& root);

// Empty if load_weights would succeed, else its error message.
std::string why_not_runnable(const Module& root);

}  // namespace mlff::mace
