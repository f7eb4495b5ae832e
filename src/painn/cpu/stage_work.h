// SPDX-License-Identifier: MIT
// The work of passes over edges, from the loops of cpu_kernels/painn.inc. Dense layers have their own work(). Functions
// of single numbers, such as activations, are not counted.
#pragma once

#include "core/stage_profile.h"
#include "cpu_kernels/kernel_table.h"

namespace mlff::painn::cpu {

// Interpolating a value in a table takes kSplineOrder products and additions, and so does its slope.
inline constexpr double kValueFlops = 2 * kernels::kSplineOrder, kTableRows = kernels::kSplineOrder + 1;

// Moments of edges. For each function: its value, its sum, and three sums with the direction. In the reverse: value and
// slope, the gradient by the function, and four gradients by the edge.
template <class Real>
StageWork moments_work(int64_t edge_count, int function_count, bool is_reverse) {
    const double flops = is_reverse ? 2 * kValueFlops + 3 * 4 + 2 : kValueFlops + 1 + 3 * 2,
                 numbers = kTableRows + (is_reverse ? 4 : 8);
    const auto all = static_cast<double>(edge_count) * function_count;
    return {all * flops, all * numbers * sizeof(Real)};
}

// One strip of the messages of some atoms. Forward: three filters, phi_u times its filter, one product for s, and two
// for each component of v. A link that stands for both edges has all except the filters twice. The reverse is counted
// from reverse_lane().
template <class Real>
StageWork strip_work(const kernels::PainnLinkCount* counts, int64_t begin, int64_t end, bool is_reverse) {
    const double one_way = is_reverse ? 3 * 2 * kValueFlops + 4 + 13 + 18 : 3 * kValueFlops + 1 + 2 + 3 * 4,
                 back = is_reverse ? 4 + 12 + 14 : 1 + 2 + 3 * 4;
    // Read from the table and from the other atom; a link that stands for both edges also adds to the other atom.
    const double numbers = 3 * kTableRows + (is_reverse ? 4 : 5), back_numbers = is_reverse ? 5 + 2 * 5 : 2 * 4;
    double links = 0, both_ways = 0;
    for (int64_t atom = begin; atom < end; ++atom) {
        links += counts[atom].all;
        both_ways += counts[atom].both_ways;
    }
    constexpr double kChannels = kernels::kRowPadding;
    const double own = static_cast<double>(end - begin) * (is_reverse ? 5 + 4 + 5 : 5 + 4);
    return {kChannels * (links * one_way + both_ways * back),
            kChannels * (links * numbers + both_ways * back_numbers + own) * sizeof(Real) +
                links * sizeof(kernels::PainnLink<Real>)};
}

}  // namespace mlff::painn::cpu
