// SPDX-License-Identifier: MIT
// The work of passes over edges, from the formulas of kernel_table.h and moment_map.h. Linear maps and contractions
// have their own work().
#pragma once

#include "core/stage_profile.h"
#include "mace/cpu/plan_names.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::cpu {

// Interpolating a value in a table takes kSplineOrder products and additions, and so does its slope.
inline constexpr double kValueFlops = 2 * kSplineOrder, kTableRows = kSplineOrder + 1;

// Messages of `edge_count` edges without moments. The reverse also has slopes, and S[a] and the gradients of
// reverse_messages in kernel_table.h; the gradient of features is not needed in the first layer. The work is unknown if
// radial networks are evaluated for every edge.
template <class Real>
StageWork messages_work(const LayerPlan<Real>& plan, int64_t edge_count, bool is_reverse) {
    if (!plan.uses_tables()) return {kUnknownWork, kUnknownWork};
    const Convolution& convolution = plan.layer.interaction.convolution;
    const bool is_first = &plan.layer == &plan.weights.layers.front();
    double flops = 0, numbers = 0;
    for (size_t p = 0; p < plan.paths.size(); ++p) {
        const PathPlan<Real>& path = plan.paths[p];
        const double channels = convolution.in[convolution.paths[p].in_block].multiplicity, in = path.in_components,
                     shares = path.share_count();
        const double couplings = 2.0 * static_cast<double>(path.couplings.size());
        flops += is_reverse ? channels * (2 * kValueFlops + 2 + 4 * shares + (is_first ? 3 : 5) * in) + 2 * couplings
                            : channels * (kValueFlops + in + 2 * shares) + couplings;
        numbers += channels * (kTableRows + in + (is_reverse ? path.out_components : 0));
    }
    const auto edges = static_cast<double>(edge_count);
    return {flops * edges, numbers * edges * sizeof(Real)};
}

// Moments of `edge_count` edges: hidden functions of the radial network times shares. The reverse has two products with
// the gradient of the moments, and slopes.
template <class Real>
StageWork moments_work(const LayerPlan<Real>& plan, int64_t edge_count, bool is_reverse) {
    if (!plan.uses_tables()) return {kUnknownWork, kUnknownWork};
    const double functions = plan.moments->layout().blocks.front().copies, rows = plan.moments->row_count();
    double couplings = 0;
    for (const PathPlan<Real>& path : plan.paths) couplings += 2.0 * static_cast<double>(path.couplings.size());
    const double flops = is_reverse ? functions * (2 * kValueFlops + 4 * rows + 2) + 2 * couplings
                                    : functions * (kValueFlops + 2 * rows) + couplings;
    const auto edges = static_cast<double>(edge_count);
    return {flops * edges, functions * (kTableRows + (is_reverse ? 3 : 1)) * edges * sizeof(Real)};
}

}  // namespace mlff::mace::cpu
