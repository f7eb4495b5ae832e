// SPDX-License-Identifier: MIT
// The work of the stages of a step on the GPU. Operations are those of the plan's own work() functions wherever a stage
// does what the CPU does; stages that do more have their own formulas here. Bytes are features of atoms and data of
// edges that are read and written. Not counted: activations, densities, pair repulsion, descriptors, indices, padding
// (except, as on the CPU, in rows of maps and gates), and weights, which stay in caches. Needs no CUDA.
#pragma once

#include <span>
#include <vector>

#include "equivariant/plan/edge_work.h"
#include "equivariant/spherical_harmonics.h"
#include "gpu/engine/step_work.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::gpu {

using mlff::gpu::StepWork;

inline double number_count(const plan::RowLayout& layout) {
    double count = 0;
    for (const plan::RowBlock& block : layout.blocks) count += static_cast<double>(block.copies) * block.components;
    return count;
}

// ---- stages of atoms ----

// `work(atom_count)` also counts weights, once. What an atom adds has none.
template <class Work>
StepWork work_of_atom(const Work& work) {
    const StageWork one = work(1), none = work(0);
    return {{one.flops - none.flops, one.bytes - none.bytes}, {}};
}

// The transpose is the same work.
template <class Real>
StepWork map_work(const plan::LinearMap<Real>& map) {
    return work_of_atom([&](int atom_count) { return map.work(atom_count); });
}

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

// Additions and multiplications of the formulas in equivariant/edge_harmonics.h, by degree. Unknown for higher ones.
inline constexpr int kCountedDegree = 3;
inline constexpr double kHarmonicsFlops[kCountedDegree + 1] = {0, 3, 18, 49},
                                                         kReverseHarmonicsFlops[kCountedDegree + 1] = {11, 17, 45, 132};
inline double harmonics_flops(int max_degree, bool is_reverse) {
    if (max_degree > kCountedDegree) return kUnknownWork;
    return (is_reverse ? kReverseHarmonicsFlops : kHarmonicsFlops)[max_degree];
}

inline constexpr double kVectorBytes = 3 * sizeof(double), kDistanceBytes = sizeof(double);

// In double precision; only the harmonics are stored as Real.
template <class Real>
StepWork harmonics_work(const Weights& weights) {
    const double stored = harmonic_count(weights.max_degree) * sizeof(Real);
    return {{}, {3 + harmonics_flops(weights.max_degree, false), kVectorBytes + kDistanceBytes + stored}};
}

// The gradients by the vectors of edges, and what the two edges between a pair of atoms contribute to forces and
// virials.
template <class Real>
StepWork forces_work(const Weights& weights, bool has_virials) {
    const double gradients = harmonic_count(weights.max_degree) * sizeof(Real) + kDistanceBytes;
    const StepWork by_vector = {
        {}, {3 + harmonics_flops(weights.max_degree, true) + 3 * 2, gradients + kDistanceBytes + 2 * kVectorBytes}};
    const StepWork forces = {{0, kVectorBytes}, {3 * 2, 2 * kVectorBytes}},
                   virials = {{0, 3 * kVectorBytes}, {6 * 5, kVectorBytes}};
    return has_virials ? by_vector + forces + virials : by_vector + forces;
}

// Harmonics and distance of an edge.
template <class Real>
double edge_bytes(const plan::LayerPlan<Real>& plan) {
    return harmonic_count(plan.weights.max_degree) * sizeof(Real) + kDistanceBytes;
}
// Their gradients: the last layer writes them, the others add to them.
template <class Real>
double edge_gradient_bytes(const plan::LayerPlan<Real>& plan) {
    return (&plan.layer == &plan.weights.layers.back() ? 1 : 2) * edge_bytes(plan);
}

// Sums of messages of an atom, or their gradient; in the reverse also the gradient of what it sends.
template <class Real>
StageWork sums_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    const double sent = is_reverse && !plan.is_first ? number_count(plan.sender_layout) : 0;
    return {0, (number_count(plan.sums_layout) + sent) * sizeof(Real)};
}

// Moments, the maps from the moments of all elements to messages, and the division.
template <class Real>
StepWork moments_work(const plan::LayerPlan<Real>& plan, std::span<const int> elements, bool is_reverse) {
    const double functions = plan.moments->layout().blocks.front().copies;
    const double table_bytes = functions * plan::kTableRows * sizeof(Real);
    StepWork sum = {{},
                    {plan::moments_work(plan, is_reverse).flops,
                     table_bytes + edge_bytes(plan) + (is_reverse ? edge_gradient_bytes(plan) : 0)}};
    const StepWork moments = {{0, number_count(plan.moments->layout()) * sizeof(Real)}, {}};  // besides the map's input
    for (int element : elements) sum = sum + moments + map_work(plan.moments->of(element));
    return sum + division_work(plan, is_reverse);
}

// Messages with radial weights from tables: in double precision, and without fused messages.
template <class Real>
StepWork table_messages_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    const double bytes = edge_bytes(plan) + (is_reverse ? edge_gradient_bytes(plan) : 0);
    return {sums_work(plan, is_reverse), plan::messages_work(plan, is_reverse) + StageWork{0, bytes}};
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

// Fused messages (fused_messages.h). The last layer of the radial network is a product for each edge, path and channel,
// and in the reverse two, for weights and slopes. In mixed precision the tensor cores compute three products of half
// precision for one of them; it counts once. So for mp0-medium, where performance.md gives 0.5 and 1.0 TFLOP of half
// precision for 12,288 atoms, a third of these is counted, and in addition the products with features and shares.
//
// The functions of an edge, their slopes, and its harmonics are prepared in memory. If they are kept, the forward pass
// prepares them for the reverse too. Shares are computed in both directions; they count once for all channels. In the
// reverse, partial gradients of harmonics and distance are written `partial_count` times for each edge and then added,
// and gradients of features are written for each edge and gathered.
struct FusedEdges {
    bool is_kept = false;
    int partial_count = 0;
};
template <class Real>
StepWork fused_messages_work(const plan::LayerPlan<Real>& plan, const FusedEdges& edges, bool is_reverse) {
    const plan::RadialColumns& columns = plan.columns;
    const double functions = columns.hidden_count + (columns.has_constant ? 1 : 0),
                 weights = plan::radial_weight_count(plan), values_and_slopes = is_reverse ? 2 : 1;
    double features = 0;
    const double harmonics = harmonic_count(plan.weights.max_degree);
    std::vector<bool> is_read(plan.sender_layout.blocks.size());
    for (size_t p = 0; p < plan.paths.size(); ++p) {
        const auto block = static_cast<size_t>(plan.layer.interaction.convolution.paths[p].in_block);
        if (!is_read[block]) features += plan::channel_count(plan, p) * plan.paths[p].in_components;
        is_read[block] = true;
    }
    double flops = plan::products_work(plan, is_reverse).flops + 2 * functions * weights * values_and_slopes +
                   plan::share_flops(plan),
           numbers = functions * values_and_slopes + harmonics + features, bytes = 0;
    if (!is_reverse || !edges.is_kept) {
        const double prepared = is_reverse || edges.is_kept ? 2 : 1;
        flops += functions * plan::kValueFlops * prepared;
        numbers += functions * (plan::kTableRows + prepared) + harmonics;
        bytes += edge_bytes(plan);
    }
    if (is_reverse) {
        const double partials = edges.partial_count * (harmonics + 1), gathered = plan.is_first ? 0 : features;
        flops += 2 * weights + partials + gathered;
        numbers += 2 * partials + 2 * gathered;
        bytes += edge_gradient_bytes(plan);
    }
    return {sums_work(plan, is_reverse), {flops, bytes + numbers * sizeof(Real)}};
}

}  // namespace mlff::mace::gpu
