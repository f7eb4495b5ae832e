// SPDX-License-Identifier: MIT
#include "equivariant/plan/gate_plan.h"

#include <algorithm>

namespace mlff::equivariant {

template <class Real>
GatePlan<Real>::GatePlan(const Gate& gate_in, const RowLayout& in)
    : gate(gate_in), in_layout(in), out_layout(gate_in.out) {
    for (const RowBlock& block : in_layout.blocks)
        for (int u = 0; u < block.copies && static_cast<int>(scalar_at.size()) < gate.scalar_count + gate.gate_count;
             ++u)
            scalar_at.push_back(block.offset + u);
}

// Calls visit(activation, index in the input, index in the output) for each scalar.
template <class Real, class Visit>
static void for_each_scalar(const GatePlan<Real>& plan, const Visit& visit) {
    int scalar = 0;
    for (int b = 0; b < plan.gate.out.block_count(); ++b) {
        const RowBlock& block = plan.out_layout.blocks[static_cast<size_t>(b)];
        for (int u = 0; u < block.copies && scalar < plan.gate.scalar_count; ++u, ++scalar)
            visit(plan.gate.activation_of(plan.gate.out[b].irrep), plan.scalar_at[static_cast<size_t>(scalar)],
                  block.offset + u);
    }
}

// Calls visit(gate, find(gate), index in the input, index in the output) for every number of the gated blocks.
template <class Real, class Find, class Visit>
static void for_each_gated(const GatePlan<Real>& plan, const Find& find, const Visit& visit) {
    int scalars = 0, gate_number = 0;
    size_t out_block = 0;
    while (scalars < plan.gate.scalar_count) scalars += plan.out_layout.blocks[out_block++].copies;
    size_t in_block = plan.in_layout.blocks.size() - (plan.out_layout.blocks.size() - out_block);
    for (; out_block < plan.out_layout.blocks.size(); ++out_block, ++in_block) {
        const RowBlock &in = plan.in_layout.blocks[in_block], &out = plan.out_layout.blocks[out_block];
        for (int u = 0; u < out.copies; ++u, ++gate_number) {
            const auto found = find(gate_number);
            for (int m = 0; m < out.components; ++m)
                visit(gate_number, found, in.offset + m * in.stride + u, out.offset + m * out.stride + u);
        }
    }
}

template <class Real>
void GatePlan<Real>::apply(const Real* in, Real* out) const {
    std::fill_n(out, out_layout.size, Real(0));
    for_each_scalar(*this, [&](const Activation& activation, int from, int to) {
        out[to] = static_cast<Real>(activate(activation, static_cast<double>(in[from])));
    });
    const auto gate_value = [&](int g) {
        return static_cast<Real>(activate(gate.gate_activation, static_cast<double>(in[gate_at(g)])));
    };
    for_each_gated(*this, gate_value, [&](int, Real value, int from, int to) { out[to] = value * in[from]; });
}

template <class Real>
void GatePlan<Real>::reverse(const Real* in, const Real* out_gradient, Real* in_gradient) const {
    std::fill_n(in_gradient, in_layout.size, Real(0));
    for_each_scalar(*this, [&](const Activation& activation, int from, int to) {
        in_gradient[from] =
            out_gradient[to] * static_cast<Real>(activation_slope(activation, static_cast<double>(in[from])));
    });
    struct GateAndSlope {
        Real value, slope;
    };
    const auto gate_and_slope = [&](int g) {
        const auto x = static_cast<double>(in[gate_at(g)]);
        return GateAndSlope{static_cast<Real>(activate(gate.gate_activation, x)),
                            static_cast<Real>(activation_slope(gate.gate_activation, x))};
    };
    for_each_gated(*this, gate_and_slope, [&](int g, const GateAndSlope& found, int from, int to) {
        in_gradient[from] = found.value * out_gradient[to];
        in_gradient[gate_at(g)] += found.slope * in[from] * out_gradient[to];
    });
}

template struct GatePlan<float>;
template struct GatePlan<double>;

}  // namespace mlff::equivariant
