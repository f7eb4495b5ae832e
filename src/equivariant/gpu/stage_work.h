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

namespace mlff::equivariant::gpu {

using mlff::gpu::StepWork;

inline double number_count(const RowLayout& layout) {
    double count = 0;
    for (const RowBlock& block : layout.blocks) count += static_cast<double>(block.copies) * block.components;
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
StepWork map_work(const LinearMap<Real>& map) {
    return work_of_atom([&](int atom_count) { return map.work(atom_count); });
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
StepWork harmonics_work(const EdgeModel& model) {
    const double stored = harmonic_count(model.max_degree) * sizeof(Real);
    return {{}, {3 + harmonics_flops(model.max_degree, false), kVectorBytes + kDistanceBytes + stored}};
}

// The gradients by the vectors of edges, and what the two edges between a pair of atoms contribute to forces and
// virials.
template <class Real>
StepWork forces_work(const EdgeModel& model, bool has_virials) {
    const double gradients = harmonic_count(model.max_degree) * sizeof(Real) + kDistanceBytes;
    const StepWork by_vector = {
        {}, {3 + harmonics_flops(model.max_degree, true) + 3 * 2, gradients + kDistanceBytes + 2 * kVectorBytes}};
    const StepWork forces = {{0, kVectorBytes}, {3 * 2, 2 * kVectorBytes}},
                   virials = {{0, 3 * kVectorBytes}, {6 * 5, kVectorBytes}};
    return has_virials ? by_vector + forces + virials : by_vector + forces;
}

// Harmonics and distance of an edge.
template <class Real>
double edge_bytes(const ConvolutionPlan<Real>& plan) {
    return harmonic_count(plan.model.max_degree) * sizeof(Real) + kDistanceBytes;
}
// Their gradients: the last layer writes them, the others add to them.
template <class Real>
double edge_gradient_bytes(const ConvolutionPlan<Real>& plan) {
    return (plan.is_last ? 1 : 2) * edge_bytes(plan);
}

// Sums of messages of an atom, or their gradient; in the reverse also the gradient of what it sends.
template <class Real>
StageWork sums_work(const ConvolutionPlan<Real>& plan, bool is_reverse) {
    const double sent = is_reverse && !plan.is_first ? number_count(plan.sender_layout) : 0;
    return {0, (number_count(plan.sums_layout) + sent) * sizeof(Real)};
}

// Moments, and the maps from the moments of all elements to messages.
template <class Real>
StepWork moments_work(const ConvolutionPlan<Real>& plan, std::span<const int> elements, bool is_reverse) {
    const double functions = plan.moments->layout().blocks.front().copies;
    const double table_bytes = functions * kTableRows * sizeof(Real);
    StepWork sum = {{},
                    {equivariant::moments_work(plan, is_reverse).flops,
                     table_bytes + edge_bytes(plan) + (is_reverse ? edge_gradient_bytes(plan) : 0)}};
    const StepWork moments = {{0, number_count(plan.moments->layout()) * sizeof(Real)}, {}};  // besides the map's input
    for (int element : elements) sum = sum + moments + map_work(plan.moments->of(element));
    return sum;
}

// Messages with radial weights from tables: in double precision, and without fused messages.
template <class Real>
StepWork table_messages_work(const ConvolutionPlan<Real>& plan, bool is_reverse) {
    const double bytes = edge_bytes(plan) + (is_reverse ? edge_gradient_bytes(plan) : 0);
    return {sums_work(plan, is_reverse), messages_work(plan, is_reverse) + StageWork{0, bytes}};
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
StepWork fused_messages_work(const ConvolutionPlan<Real>& plan, const FusedEdges& edges, bool is_reverse) {
    const RadialColumns& columns = plan.columns;
    const double functions = columns.hidden_count + (columns.has_constant ? 1 : 0), weights = radial_weight_count(plan),
                 values_and_slopes = is_reverse ? 2 : 1;
    double features = 0;
    const double harmonics = harmonic_count(plan.model.max_degree);
    std::vector<bool> is_read(plan.sender_layout.blocks.size());
    for (size_t p = 0; p < plan.paths.size(); ++p) {
        const auto block = static_cast<size_t>(plan.messages.convolution.paths[p].in_block);
        if (!is_read[block]) features += channel_count(plan, p) * plan.paths[p].in_components;
        is_read[block] = true;
    }
    double flops =
               products_work(plan, is_reverse).flops + 2 * functions * weights * values_and_slopes + share_flops(plan),
           numbers = functions * values_and_slopes + harmonics + features, bytes = 0;
    if (!is_reverse || !edges.is_kept) {
        const double prepared = is_reverse || edges.is_kept ? 2 : 1;
        flops += functions * kValueFlops * prepared;
        numbers += functions * (kTableRows + prepared) + harmonics;
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

}  // namespace mlff::equivariant::gpu
