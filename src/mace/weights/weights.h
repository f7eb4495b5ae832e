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

#include "equivariant/convolution.h"
#include "equivariant/linear.h"
#include "formats/module_tree.h"

namespace mlff::mace {

inline constexpr int kMaxCorrelation = 4;

// y = factor * f(x)
struct Activation {
    enum class Kind { identity, silu, tanh, sigmoid, absolute };
    Kind kind = Kind::identity;
    double factor = 1;
};

// y = activation(norm(x weight + bias)); norm(x) = (x - mean) / sqrt(variance + epsilon) * norm_scale + norm_offset
struct DenseLayer {
    int in_width = 0;
    int out_width = 0;
    std::vector<double> weight;       // [in_width][out_width]
    std::vector<double> bias;         // [out_width], or empty
    std::vector<double> norm_scale;   // [out_width], or empty: no normalisation
    std::vector<double> norm_offset;  // [out_width]
    double norm_epsilon = 0;
    Activation activation;
};

struct DenseNetwork {
    std::vector<DenseLayer> layers;  // never empty

    int in_width() const { return layers.front().in_width; }
    int out_width() const { return layers.back().out_width; }
};

// f(r) = 1 - (p+1)(p+2)/2 t^p + p(p+2) t^(p+1) - p(p+1)/2 t^(p+2), t = r / radius; 0 from `radius` on
struct PolynomialCutoff {
    double radius = 0;
    int exponent = 0;
};

// Distances may pass through a transform x(r) that depends on the two elements; the basis functions are functions of x.
struct RadialEmbedding {
    enum class Basis {
        bessel,    // factor sin(k_n x) / x,            parameters k_n
        gaussian,  // exp(factor (x - mu_n)^2),         parameters mu_n
        chebyshev  // T_n(x), n = 1, 2, ...
    };
    enum class Transform {
        none,
        agnesi,    // 1 / (1 + a y^q / (1 + y^(q-p))),   y = 2 r / s,  s = R_i + R_j
        soft,      // p0 + (r - p0) (1 + tanh(alpha (r - (p0 + p1) / 2) / (p1 - p0))) / 2,  p0 = 3s/4, p1 = 4s/3
        soft_2023  // r + (1 + tanh(-y - a y^b)) / 2,    y = 4 r / s
    };
    Basis basis = Basis::bessel;
    int basis_count = 0;
    double factor = 0;
    std::vector<double> parameters;  // [basis_count], empty for Chebyshev polynomials
    Transform transform = Transform::none;
    double a = 0, p = 0, q = 0, alpha = 0, b = 0;
    std::vector<double> radii;  // [element], R above, angstrom
    PolynomialCutoff cutoff;
    bool cutoff_in_basis = true;  // false: the cutoff multiplies the weights of messages and densities
};

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

// Output: { scalar(x) of the scalars, gate(y) * v for each copy of the gated blocks }. Input: scalars, gates, gated
// blocks.
struct Gate {
    Irreps in;
    Irreps out;
    int scalar_count = 0;
    int gate_count = 0;
    Activation scalar_activation;
    Activation gate_activation;
};

// All interaction blocks in one form. With g = up(h):
//   sum    = sum over edges of convolution(g[sender], Y, radial_network([R, from sender, from receiver]))
//   m      = message(sum) / (divisor_constant + divisor_density * density)
//   m      = after_gate(gate(m + residual(g)))   if there is a gate
//   m      = message_skip[element](m)            if there is one
//   skip   = skip[element](h)                    if there is one: added to the features after the product
// density = sum over edges of tanh(density_network([...])^2).
struct Interaction {
    // The inputs of the networks besides the radial basis: none, the features down(h), or a table by element.
    enum class EdgeInput { radial, features, elements };
    struct Gated {
        Linear residual;
        Gate gate;
        Linear after;
    };
    EdgeInput edge_input = EdgeInput::radial;
    std::optional<Linear> down;        // EdgeInput::features
    int edge_width = 0;                // width of each of the two extra inputs
    std::vector<double> sender_table;  // EdgeInput::elements: [element][edge_width]
    std::vector<double> receiver_table;
    Linear up;
    Convolution convolution;
    DenseNetwork radial_network;
    std::optional<DenseNetwork> density_network;
    double divisor_constant = 1;
    double divisor_density = 0;
    Linear message;
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

struct Weights {
    std::string class_name;              // "ScaleShiftMACE"
    std::vector<int> atomic_numbers;     // by element
    std::vector<std::string> heads;      // never empty
    int fixed_head = -1;                 // the only head of a LAMMPS file; -1: not fixed
    double cutoff = 0;                   // angstrom; edges are strictly shorter
    int max_degree = 0;                  // of the harmonics
    int channel_count = 0;               // of the first features
    std::vector<double> node_embedding;  // [element][channel_count]
    std::optional<JointEmbedding> joint_embedding;
    std::optional<Linear> embedding_readout;
    RadialEmbedding radial;
    std::optional<PairRepulsion> repulsion;
    std::vector<Layer> layers;
    std::vector<Readout> readouts;
    std::vector<double> atomic_energies;  // [head][element], eV
    std::vector<double> scale;            // [head]; 1 and 0 for a plain MACE
    std::vector<double> shift;

    int element_count() const { return static_cast<int>(atomic_numbers.size()); }
    int head_count() const { return static_cast<int>(heads.size()); }
    int element_of(int atomic_number) const;  // -1 if unknown to the model
    int descriptor_count() const;             // invariant features (0e), summed over layers
};

// Throws Error{unsupported} that names the class or option that cannot be run, or Error{format} that names the faulty
// tensor.
Weights load_weights(const Module& root);

// Empty if load_weights would succeed, else its error message.
std::string why_not_runnable(const Module& root);

}  // namespace mlff::mace
