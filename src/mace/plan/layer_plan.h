// SPDX-License-Identifier: MIT
// One layer of a model, laid out for the CPU kernels.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "mace/plan/contraction.h"
#include "mace/plan/edge_functions.h"
#include "mace/plan/linear_map.h"
#include "mace/plan/moment_map.h"
#include "mace/plan/radial_table.h"
#include "mace/plan/row_layout.h"
#include "mace/weights/weights.h"

namespace mlff::mace::plan {

// "" if the CPU backend has all that the model needs, else what it lacks.
std::string why_not_on_cpu(const Weights& weights);

template <class Real>
struct PathPlan {
    struct Coupling {
        int share;  // a * out_components + c
        int harmonic;
        Real value;
    };
    int in_offset = 0, in_components = 0;    // of the sender's features
    int out_offset = 0, out_components = 0;  // of the summed messages
    int stride = 0;
    int column = 0;     // of the radial table
    Real reversal = 1;  // (-1)^l of the harmonics: their sign for the opposite edge
    std::vector<Coupling> couplings;
    std::vector<RowShare<Real>> to_shares,
        to_harmonics;  // the same as sums: shares[a][c] of harmonics, and harmonics' gradients of those of shares

    int share_count() const { return in_components * out_components; }
};

// message = after(gate(x)), x = message(sums) / divisor + residual(own sender features)
template <class Real>
struct GatePlan {
    GatePlan(const Interaction::Gated& gated, const RowLayout& senders, const RowLayout& in, const RowLayout& messages);

    const Gate& gate;
    RowLayout in_layout, out_layout;
    LinearMap<Real> residual, after;
    std::vector<int> scalar_at;  // [scalar, then gate]: where its number is in the input rows
    int gate_at(int g) const { return scalar_at[static_cast<size_t>(gate.scalar_count + g)]; }

    void apply(const Real* in, Real* out) const;
    void reverse(const Real* in, const Real* out_gradient, Real* in_gradient) const;  // overwrites
};

struct LayerOptions {
    bool exact_radial = false;      // no tables, the networks are evaluated for every edge
    bool tables_in_blocks = false;  // the columns of each path apart, as the CPU's kernels want them
    bool hidden_radial =
        false;  // tables of the radial network's hidden functions, not of its weights; it must end in a linear layer
};

template <class Real>
struct LayerPlan {
    LayerPlan(const Weights& weights, const Layer& layer, const RowLayout& features_in, const LayerOptions& options);

    // Makes what depends on the elements present: radial tables, contraction coefficients, maps of moments.
    void prepare(const std::vector<int>& elements_present, ThreadTeam& team);
    bool uses_tables() const { return !tables.empty(); }
    const RadialTable<Real>& table(int receiver_element, int sender_element) const {
        return *tables[static_cast<size_t>(receiver_element) * receiver_stride +
                       static_cast<size_t>(sender_element) * sender_stride];
    }

    const Weights& weights;
    const Layer& layer;
    RowLayout sender_layout, sums_layout, message_layout, features_layout;
    RowLayout linear_layout;  // of `message`: the gate's input, or the messages themselves
    LinearMap<Real> up, message, linear;
    std::optional<LinearMap<Real>> message_skip, skip, down;
    std::optional<GatePlan<Real>> gate;
    Contraction<Real> contraction;
    std::vector<PathPlan<Real>> paths;
    std::optional<MomentMaps<Real>> moments;  // where the senders' features depend on their element alone
    double lowest_distance = 0;               // tables begin here
    RadialColumns columns;
    EdgeFunctions functions;
    int most_components = 1;                                 // of a sender's block
    int most_shares = 1;                                     // of a path
    int widest_path = kRowPadding;                           // its stride
    std::vector<int> table_blocks;                           // widths of the blocks that columns of tables lie in
    std::vector<std::unique_ptr<RadialTable<Real>>> tables;  // [receiver][sender], or one for all; empty: none
    size_t receiver_stride = 0, sender_stride = 0;
};

}  // namespace mlff::mace::plan
