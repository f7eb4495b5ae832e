// SPDX-License-Identifier: MIT
// The messages of one layer: layouts, maps and tables for the CPU kernels. The GPU backend copies them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "equivariant/plan/edge_functions.h"
#include "equivariant/plan/linear_map.h"
#include "equivariant/plan/moment_map.h"
#include "equivariant/plan/radial_table.h"
#include "equivariant/plan/row_layout.h"

namespace mlff::equivariant {

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

struct ConvolutionOptions {
    bool exact_radial = false;      // no tables: the networks are evaluated for every edge
    bool tables_in_blocks = false;  // a separate block for the columns of each path, as the CPU kernels need it
    bool is_first = false;          // nobody needs gradients of the features that the layer reads
    bool is_last = false;           // its reverse, the first of all, writes gradients of edges; others add to them
    // Tables of the hidden functions of the radial network instead of the weights. It must end in a linear layer.
    bool hidden_radial = false;
    double table_begin = 0;        // angstrom: shorter edges may be evaluated exactly, which is slower
    double table_error_share = 1;  // of the usual error bound of tables
};

template <class Real>
struct ConvolutionPlan {
    // `result` is the layout of the output of `message`.
    ConvolutionPlan(const EdgeModel& model, const EdgeMessages& messages, const RowLayout& features_in,
                    const RowLayout& result, FeaturesOfElement senders, const ConvolutionOptions& options);

    // Makes radial tables and moment maps for the elements present.
    void prepare(const std::vector<int>& elements_present, ThreadTeam& team);
    bool uses_tables() const { return !tables.empty(); }
    const RadialTable<Real>& table(int receiver_element, int sender_element) const {
        return *tables[static_cast<size_t>(receiver_element) * receiver_stride +
                       static_cast<size_t>(sender_element) * sender_stride];
    }

    const EdgeModel& model;
    const EdgeMessages& messages;
    RowLayout sender_layout, sums_layout, linear_layout;
    LinearMap<Real> up, message;
    std::optional<LinearMap<Real>> down;
    std::vector<PathPlan<Real>> paths;
    std::optional<MomentMaps<Real>> moments;  // if the features of senders depend on their element alone
    bool is_first = false, is_last = false;
    double lowest_distance = 0;  // tables begin here
    double table_error_share = 1;
    RadialColumns columns;
    EdgeFunctions functions;
    int most_components = 1;                                 // of a block of sender features
    int most_shares = 1;                                     // of a path
    int widest_path = kRowPadding;                           // the largest stride of a path
    std::vector<int> table_blocks;                           // widths of the blocks of columns in tables
    std::vector<std::unique_ptr<RadialTable<Real>>> tables;  // [receiver][sender], or one for all pairs; empty: none
    size_t receiver_stride = 0, sender_stride = 0;
};

}  // namespace mlff::equivariant
