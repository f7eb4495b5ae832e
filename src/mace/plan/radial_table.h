// SPDX-License-Identifier: MIT
// The radial network of a layer as a table.
#pragma once

#include "core/threads.h"
#include "cpu_kernels/spline_table.h"
#include "mace/plan/edge_functions.h"
#include "mace/plan/kernel_table.h"

namespace mlff::mace::plan {

template <class Real>
using RadialTable = SplineTable<Real>;
template <class Real>
using RadialTableView = SplineTableView<Real>;

// The functions of one layer for one pair of elements, from `low` to the cutoff; their columns in blocks of these
// widths. Throws Error{unsupported} if the error bound cannot be met with a table of sensible size.
template <class Real>
RadialTable<Real> make_radial_table(const EdgeFunctions& functions, std::span<const int> block_widths, double low,
                                    double cutoff, int sender_element, int receiver_element, ThreadTeam& team);

// Transforms with a power of r are not smooth at r = 0, and their tables begin here; below, the reference takes over.
double lowest_distance(const RadialEmbedding& radial);

// The part that changes with the elements of a pair: 0 for all pairs where the functions are the same for all.
bool depends_on_elements(const Weights& weights, const Interaction& interaction);

}  // namespace mlff::mace::plan
