// SPDX-License-Identifier: MIT
// The work of passes over edges, for one edge, from the formulas of kernel_table.h and moment_map.h. Linear maps, gates
// and contractions have their own work().
#pragma once

#include "core/stage_profile.h"
#include "equivariant/plan/convolution_plan.h"

namespace mlff::equivariant {

// Interpolating a value in a table takes kSplineOrder products and additions, and so does its slope.
inline constexpr double kValueFlops = 2 * kSplineOrder, kTableRows = kSplineOrder + 1;

// Shares from harmonics. The gradients of harmonics are the same work.
template <class Real>
double share_flops(const ConvolutionPlan<Real>& plan) {
    double couplings = 0;
    for (const PathPlan<Real>& path : plan.paths) couplings += static_cast<double>(path.couplings.size());
    return 2 * couplings;
}

template <class Real>
double channel_count(const ConvolutionPlan<Real>& plan, size_t path) {
    const Convolution& convolution = plan.messages.convolution;
    return convolution.in[convolution.paths[path].in_block].multiplicity;
}
// One for each path and channel.
template <class Real>
double radial_weight_count(const ConvolutionPlan<Real>& plan) {
    double count = 0;
    for (size_t p = 0; p < plan.paths.size(); ++p) count += channel_count(plan, p);
    return count;
}

// Products of radial weights, features of senders and shares. The reverse has S[a] and the gradients of
// reverse_messages in kernel_table.h; the gradient of features is not needed in the first layer.
template <class Real>
StageWork products_work(const ConvolutionPlan<Real>& plan, bool is_reverse) {
    double flops = is_reverse ? share_flops(plan) : 0, numbers = 0;
    for (size_t p = 0; p < plan.paths.size(); ++p) {
        const PathPlan<Real>& path = plan.paths[p];
        const double channels = channel_count(plan, p), in = path.in_components, shares = path.share_count();
        flops += channels * (is_reverse ? 4 * shares + (plan.is_first ? 3 : 5) * in : in + 2 * shares);
        numbers += channels * (in + (is_reverse ? path.out_components : 0));
    }
    return {flops, numbers * sizeof(Real)};
}

// Messages without moments, with radial weights from tables. The reverse also has the slopes of the weights. The work
// is unknown if radial networks are evaluated for every edge.
template <class Real>
StageWork messages_work(const ConvolutionPlan<Real>& plan, bool is_reverse) {
    if (!plan.uses_tables()) return {kUnknownWork, kUnknownWork};
    const double weights = radial_weight_count(plan), weight_flops = is_reverse ? 2 * kValueFlops + 2 : kValueFlops;
    return products_work(plan, is_reverse) +
           StageWork{share_flops(plan) + weights * weight_flops, weights * kTableRows * sizeof(Real)};
}

// Moments: hidden functions of the radial network times shares. The reverse has two products with the gradient of the
// moments, and slopes.
template <class Real>
StageWork moments_work(const ConvolutionPlan<Real>& plan, bool is_reverse) {
    if (!plan.uses_tables()) return {kUnknownWork, kUnknownWork};
    const double functions = plan.moments->layout().blocks.front().copies, rows = plan.moments->row_count();
    const double flops = is_reverse ? functions * (2 * kValueFlops + 4 * rows + 2) + 2 * share_flops(plan)
                                    : functions * (kValueFlops + 2 * rows) + share_flops(plan);
    return {flops, functions * (kTableRows + (is_reverse ? 3 : 1)) * sizeof(Real)};
}

}  // namespace mlff::equivariant
