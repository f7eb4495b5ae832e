// SPDX-License-Identifier: MIT
// The work of the stages of a step that this family alone has; see equivariant/gpu/stage_work.h. Needs no CUDA.
#pragma once

#include "equivariant/gpu/stage_work.h"
#include "nequip/plan/layer_plan.h"

namespace mlff::nequip::gpu {

using equivariant::gpu::map_work;
using equivariant::gpu::number_count;
using equivariant::gpu::work_of_atom;
using mlff::gpu::StepWork;

// The map of sums to messages, unless moments have it, and the self connection. In the first layer, nobody needs the
// gradient of the features below.
template <class Real>
StepWork linear_maps_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    StepWork sum;
    if (!plan.moments) sum = sum + map_work(plan.message);
    if (!(is_reverse && plan.is_first)) sum = sum + map_work(plan.self_connection);
    return sum;
}

// The gate and, before it, the norm, whose output is computed again in the reverse.
template <class Real>
StepWork gate_work(const plan::LayerPlan<Real>& plan, bool is_reverse) {
    const StepWork of_gate = work_of_atom([&](int atom_count) { return plan.gate.work(atom_count, is_reverse); });
    if (!plan.norm) return of_gate;
    const double numbers = number_count(plan.linear_layout);
    return of_gate + (is_reverse ? StepWork{{14 * numbers, 7 * numbers * sizeof(Real)}, {}}
                                 : StepWork{{5 * numbers, 3 * numbers * sizeof(Real)}, {}});
}

// In double precision. The gradient has the same products as the energy, and is zero for all but scalars.
template <class Real>
StepWork readout_work(const Weights& weights, bool has_gradients) {
    double products = 0;
    for (const DenseLayer& layer : weights.readout.layers)
        products += static_cast<double>(layer.in_width) * layer.out_width;
    double bytes = weights.readout.in_width() * sizeof(Real) + sizeof(double);
    if (has_gradients) bytes += static_cast<double>(weights.layers.back().gate.out.dimension()) * sizeof(Real);
    return {{2 * products * (has_gradients ? 2 : 1), bytes}, {}};
}

}  // namespace mlff::nequip::gpu
