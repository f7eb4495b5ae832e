// SPDX-License-Identifier: MIT
// The work of the stages of a step that MACE alone has; see equivariant/gpu/stage_work.h. Needs no CUDA.
#pragma once

#include <span>
#include <vector>

#include "equivariant/gpu/stage_work.h"
#include "mace/gpu/engine_names.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::gpu {

// ---- stages of atoms ----

template <class Real>
StepWork contraction_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    return work_of_atom([&](int atom_count) { return plan.contraction.work(atom_count, is_reverse); });
}

// In the first layer, nobody needs the gradient of the features below.
template <class Real>
StepWork linear_maps_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    const bool has_skip = plan.skip && !(is_reverse && plan.is_first);
    return has_skip ? map_work(plan.linear) + map_work(*plan.skip) : map_work(plan.linear);
}

// The division of messages by a divisor that depends on densities. Its reverse has a product with the messages, which
// are others than the divided ones if there is a map by element between them.
template <class Real>
StepWork division_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    if (plan.columns.density < 0) return {};
    const double numbers = number_count(plan.linear_layout);
    if (!is_reverse) return {{numbers, 2 * numbers * sizeof(Real)}, {}};
    return {{3 * numbers, (plan.message_skip ? 4 : 3) * numbers * sizeof(Real)}, {}};
}

template <class Real>
StepWork message_map_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    return map_work(plan.message) + division_work(plan, is_reverse);
}

// Forward, the messages are also copied: the reverse needs them before and after the residual.
template <class Real>
StepWork gate_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    const bool has_residual = !(is_reverse && plan.is_first);
    const double copied = is_reverse ? 0 : 2 * number_count(plan.linear_layout);
    return work_of_atom([&](int atom_count) { return plan.gate->work(atom_count, is_reverse, has_residual); }) +
           StepWork{{0, copied * sizeof(Real)}, {}};
}

// All readouts, in double precision. The gradient has the same products as the energy.
template <class Real>
StepWork readouts_work(const Weights& weights, bool has_gradients) {
    double products = 0, bytes = 0;
    for (const Readout& readout : weights.readouts) {
        std::vector<bool> is_read(static_cast<size_t>(readout.first.in.block_count()));
        for (const Linear::Path& path : readout.first.paths) is_read[static_cast<size_t>(path.in_block)] = true;
        double features = 0;
        for (int block = 0; block < readout.first.in.block_count(); ++block)
            if (is_read[static_cast<size_t>(block)]) features += readout.first.in[block].size();
        const double hidden = readout.last ? readout.first.out.dimension() : 1,
                     second = readout.middle ? readout.middle->out.dimension() : 0;
        products += features * hidden + (readout.middle ? hidden * second + second : readout.last ? hidden : 0);
        bytes += features * sizeof(Real) + sizeof(double);
    }
    if (has_gradients)
        for (const Layer& layer : weights.layers)
            bytes += static_cast<double>(layer.linear.out.dimension()) * sizeof(Real);
    return {{2 * products * (has_gradients ? 2 : 1), bytes}, {}};
}

// ---- stages of edges ----

// Moments, the maps from the moments of all elements to messages, and the division.
template <class Real>
StepWork moments_work(const plan::LayerPlan<Real>& plan, std::span<const int> elements, bool is_reverse) {
    const plan::ConvolutionPlan<Real>& convolution = plan;
    return equivariant::gpu::moments_work(convolution, elements, is_reverse) + division_work(plan, is_reverse);
}

// Messages with radial weights from a network that is evaluated for every edge (edge_network.h): the terms of atoms,
// the first layer from a table, the other layers, and products with weights that are in memory. The gradient of the
// weights is set to zero, then added to.
template <class Real>
StepWork network_messages_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    const Interaction& interaction = plan.layer.interaction;
    const std::vector<DenseLayer>& layers = interaction.radial_network.layers;
    const double width = layers.front().out_width, weights = plan::radial_weight_count(plan);
    const StageWork of_ends = {2.0 * interaction.edge_width * 2 * width,
                               (interaction.edge_width + 2 * width) * sizeof(Real)};
    StageWork of_atom = sums_work(plan, is_reverse);
    if (!(is_reverse && plan.is_first)) of_atom = of_atom + map_work(*plan.down).of_atom + of_ends;
    // The reverse of the first layer has the slope of the table, its product with the gradient, and two sums of
    // gradients: over edges that the atom receives, and over edges along which it sends.
    double flops = width * (is_reverse ? plan::kValueFlops + 4 : plan::kValueFlops + 2);
    double numbers = width * (is_reverse ? plan::kTableRows - 1 + 2 : plan::kTableRows + 2);
    for (size_t n = 1; n < layers.size(); ++n) {
        flops += 2.0 * layers[n].in_width * layers[n].out_width;
        numbers += (is_reverse ? 2.0 : 1.0) * layers[n].in_width + layers[n].out_width;
    }
    flops += plan::share_flops(plan) + (is_reverse ? weights : 0);
    numbers += weights * (is_reverse ? 1 + 3 : 1);
    const double bytes =
        edge_bytes(plan) + (is_reverse ? edge_gradient_bytes(plan) + 2 * kDistanceBytes : 0) + numbers * sizeof(Real);
    return {of_atom, plan::products_work(plan, is_reverse) + StageWork{flops, bytes}};
}

}  // namespace mlff::mace::gpu
