// SPDX-License-Identifier: MIT
// Tables of the radial functions of a layer.
#pragma once

#include "core/threads.h"
#include "cpu_kernels/spline_table.h"
#include "equivariant/plan/edge_functions.h"
#include "equivariant/plan/kernel_table.h"

namespace mlff::equivariant {

template <class Real>
using RadialTable = SplineTable<Real>;
template <class Real>
using RadialTableView = SplineTableView<Real>;

// A table for one pair of elements, from `low` to the cutoff, with columns in blocks of these widths. Throws
// Error{unsupported} if a table of sensible size cannot meet the error bound.
template <class Real>
RadialTable<Real> make_radial_table(const EdgeFunctions& functions, std::span<const int> block_widths, double low,
                                    double cutoff, int sender_element, int receiver_element, ThreadTeam& team,
                                    double error_share = 1);

// Where tables begin. Transforms with a power of r are not smooth at r = 0. The CPU evaluates shorter edges exactly.
double lowest_distance(const RadialEmbedding& radial);

// Whether each pair of elements needs its own table.
bool depends_on_elements(const EdgeModel& model, const EdgeMessages& messages);

}  // namespace mlff::equivariant
