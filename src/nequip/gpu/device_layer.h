// SPDX-License-Identifier: MIT
// One layer of a model on the GPU: the stages of the host's plan, and their features of atoms. For CUDA sources only.
#pragma once

#include <optional>

#include "equivariant/gpu/convolution.h"
#include "equivariant/gpu/gate.h"
#include "gpu/runtime/device_buffer.h"
#include "nequip/gpu/norm.h"
#include "nequip/plan/layer_plan.h"

namespace mlff::nequip::gpu {

using namespace mlff::gpu;
using namespace equivariant::gpu;

// Made from the host's plan, which must outlive it.
template <class Real>
struct DeviceLayer : DeviceConvolution<Real> {
    DeviceLayer(const plan::LayerPlan<Real>& plan_in, const plan::RowLayout& below, int harmonic_count,
                const MessageOptions& options, cudaStream_t stream)
        : DeviceConvolution<Real>(plan_in, below, harmonic_count, 1, options, stream),
          plan(plan_in),
          self_connection(plan.layer.self_connection, below, plan.linear_layout, stream),
          gate(plan.gate, stream) {
        if (plan.norm) norm.emplace(*plan.norm, stream);
        upload(up_bias, plan.up_bias, stream);
        upload(message_bias, plan.message_bias, stream);
    }

    const plan::LayerPlan<Real>& plan;
    DeviceLinear<Real> self_connection;
    std::optional<DeviceNorm<Real>> norm;
    DeviceGate<Real> gate;
    DeviceBuffer<Real> up_bias, message_bias;  // empty: none

    // [atom][...]
    DeviceBuffer<Real> senders;      // what atoms send; that of the first layer is by element
    DeviceBuffer<Real> gate_inputs;  // before the norm
    DeviceBuffer<Real> features, features_gradient;

private:
    static void upload(DeviceBuffer<Real>& to, const Buffer<Real>& from, cudaStream_t stream) {
        if (!from.empty()) to.upload(from.data(), static_cast<int64_t>(from.size()), "the model", stream);
    }
};

}  // namespace mlff::nequip::gpu
