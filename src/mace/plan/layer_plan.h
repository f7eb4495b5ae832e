// SPDX-License-Identifier: MIT
// One layer of a model: layouts, maps and tables for the CPU kernels. The GPU backend copies them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/stage_profile.h"
#include "equivariant/plan/convolution_plan.h"
#include "equivariant/plan/gate_plan.h"
#include "mace/plan/contraction.h"
#include "mace/plan/names.h"
#include "mace/weights/weights.h"

namespace mlff::mace::plan {

// Why the CPU backend cannot run the model; "" if it can.
std::string why_not_on_cpu(const Weights& weights);

// messages = after(gate(x)), x = message(sums) / divisor + residual(what the atom itself sends)
template <class Real>
struct GatedPlan : GatePlan<Real> {
    GatedPlan(const Interaction::Gated& gated, const RowLayout& senders, const RowLayout& in,
              const RowLayout& messages);

    LinearMap<Real> residual, after;

    // Of the gate and its maps.
    StageWork work(int atom_count, bool is_reverse, bool has_residual) const {
        const StageWork of_gate = GatePlan<Real>::work(atom_count, is_reverse) + after.work(atom_count);
        return has_residual ? residual.work(atom_count) + of_gate : of_gate;
    }
};

using LayerOptions = ConvolutionOptions;

template <class Real>
struct LayerPlan : ConvolutionPlan<Real> {
    LayerPlan(const Weights& weights, const Layer& layer, const RowLayout& features_in, LayerOptions options);

    // Makes radial tables, contraction coefficients and moment maps for the elements present.
    void prepare(const std::vector<int>& elements_present, ThreadTeam& team);

    const Weights& weights;
    const Layer& layer;
    RowLayout message_layout, features_layout;
    LinearMap<Real> linear;
    std::optional<LinearMap<Real>> message_skip, skip;
    std::optional<GatedPlan<Real>> gate;
    Contraction<Real> contraction;
};

}  // namespace mlff::mace::plan
