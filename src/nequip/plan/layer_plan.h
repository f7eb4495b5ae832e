// SPDX-License-Identifier: MIT
// One layer of a model: layouts, maps and tables for fast kernels.
#pragma once

#include <optional>
#include <string>

#include "core/stage_profile.h"
#include "equivariant/plan/convolution_plan.h"
#include "equivariant/plan/gate_plan.h"
#include "nequip/plan/norm_plan.h"
#include "nequip/weights/weights.h"

namespace mlff::nequip::plan {

using namespace equivariant;

template <class Real>
struct LayerPlan : ConvolutionPlan<Real> {
    LayerPlan(const Weights& weights, const Layer& layer, const RowLayout& features_in, ConvolutionOptions options);

    const Layer& layer;
    RowLayout features_layout;  // of the output
    LinearMap<Real> self_connection;
    std::optional<NormPlan<Real>> norm;
    GatePlan<Real> gate;
    Buffer<Real> up_bias, message_bias;  // in the layouts of the maps' outputs; empty: none
};

}  // namespace mlff::nequip::plan
