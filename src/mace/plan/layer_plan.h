// SPDX-License-Identifier: MIT
// One layer of a model: layouts, maps and tables for the CPU kernels. The GPU backend copies them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/stage_profile.h"
#include "mace/plan/contraction.h"
#include "mace/plan/edge_functions.h"
#include "mace/plan/linear_map.h"
#include "mace/plan/moment_map.h"
#include "mace/plan/radial_table.h"
#include "mace/plan/row_layout.h"
#include "mace/weights/weights.h"

namespace mlff::mace::plan {

// Why the CPU backend cannot run the model; "" if it can.
std::string why_not_on_cpu(const Weights& weights);

template <class Real>
struct PathPlan {
    struct Coupling {
        int share;  // index of shares[a][c]: a * out_components + c
        int harmonic;
        Real value;
    };
    int in_offset = 0, in_components = 0;    // of the sender's features
    int out_offset = 0, out_components = 0;  // of the summed messages
    int stride = 0;
    int column = 0;     // of the radial table
    Real reversal = 1;  // (-1)^l: the sign of the harmonics of the reverse edge
    std::vector<Coupling> couplings;
    // The couplings as sums: from harmonics to shares[a][c], and from the gradients of shares to those of harmonics.
    std::vector<RowShare<Real>> to_shares, to_harmonics;

    int share_count() const { return in_components * out_components; }
};

// messages = after(gate(x)), x = message(sums) / divisor + residual(what the atom itself sends)
template <class Real>
struct GatePlan {
    GatePlan(const Interaction::Gated& gated, const RowLayout& senders, const RowLayout& in, const RowLayout& messages);

    const Gate& gate;
    RowLayout in_layout, out_layout;
    LinearMap<Real> residual, after;
    std::vector<int> scalar_at;  // [scalars, then gates]: index in the input
    int gate_at(int g) const { return scalar_at[static_cast<size_t>(gate.scalar_count + g)]; }

    void apply(const Real* in, Real* out) const;
    void reverse(const Real* in, const Real* out_gradient, Real* in_gradient) const;  // overwrites

    // Of the gate and its maps. Activations are not counted, their slopes are factors in the reverse.
    StageWork work(int atom_count, bool is_reverse, bool has_residual) const {
        const double scalars = gate.scalar_count, gates = gate.gate_count, gated = gate.out.dimension() - scalars;
        const double flops = is_reverse ? scalars + gates + 3 * gated : gated,
                     numbers = (is_reverse ? 2 : 1) * in_layout.size + out_layout.size;
        const StageWork of_gate = {flops * atom_count, numbers * atom_count * sizeof(Real)};
        return has_residual ? residual.work(atom_count) + of_gate + after.work(atom_count)
                            : of_gate + after.work(atom_count);
    }
};

struct LayerOptions {
    bool exact_radial = false;      // no tables: the networks are evaluated for every edge
    bool tables_in_blocks = false;  // a separate block for the columns of each path, as the CPU kernels need it
    // Tables of the hidden functions of the radial network instead of the weights. It must end in a linear layer.
    bool hidden_radial = false;
};

template <class Real>
struct LayerPlan {
    LayerPlan(const Weights& weights, const Layer& layer, const RowLayout& features_in, const LayerOptions& options);

    // Makes radial tables, contraction coefficients and moment maps for the elements present.
    void prepare(const std::vector<int>& elements_present, ThreadTeam& team);
    bool uses_tables() const { return !tables.empty(); }
    const RadialTable<Real>& table(int receiver_element, int sender_element) const {
        return *tables[static_cast<size_t>(receiver_element) * receiver_stride +
                       static_cast<size_t>(sender_element) * sender_stride];
    }

    const Weights& weights;
    const Layer& layer;
    RowLayout sender_layout, sums_layout, message_layout, features_layout;
    RowLayout linear_layout;  // of the output of `message`: the input of the gate, or the messages themselves
    LinearMap<Real> up, message, linear;
    std::optional<LinearMap<Real>> message_skip, skip, down;
    std::optional<GatePlan<Real>> gate;
    Contraction<Real> contraction;
    std::vector<PathPlan<Real>> paths;
    std::optional<MomentMaps<Real>> moments;  // if the features of senders depend on their element alone
    double lowest_distance = 0;               // tables begin here
    RadialColumns columns;
    EdgeFunctions functions;
    int most_components = 1;                                 // of a block of sender features
    int most_shares = 1;                                     // of a path
    int widest_path = kRowPadding;                           // the largest stride of a path
    std::vector<int> table_blocks;                           // widths of the blocks of columns in tables
    std::vector<std::unique_ptr<RadialTable<Real>>> tables;  // [receiver][sender], or one for all pairs; empty: none
    size_t receiver_stride = 0, sender_stride = 0;
};

}  // namespace mlff::mace::plan
