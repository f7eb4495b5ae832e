// SPDX-License-Identifier: MIT
// One layer of a model on the GPU: the stages of the host's plan, and their features of atoms. For CUDA sources only.
#pragma once

#include <optional>
#include <vector>

#include "equivariant/gpu/convolution.h"
#include "equivariant/gpu/gate.h"
#include "gpu/runtime/device_buffer.h"
#include "mace/gpu/contraction.h"
#include "mace/gpu/edge_network.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::gpu {

// Made from the host's plan, which must outlive it.
template <class Real>
struct DeviceLayer : DeviceConvolution<Real> {
    DeviceLayer(const plan::LayerPlan<Real>& plan_in, const plan::RowLayout& below, int harmonic_count,
                int element_count, const MessageOptions& options, cudaStream_t stream)
        : DeviceConvolution<Real>(plan_in, below, harmonic_count, message_factor(plan_in), options, stream),
          plan(plan_in),
          linear(plan.layer.linear, plan::RowLayout(plan.layer.contraction.out), plan.features_layout, stream),
          contraction(plan.contraction, element_count, stream) {
        const Interaction& interaction = plan.layer.interaction;
        if (interaction.edge_input == Interaction::EdgeInput::features) edge_network.emplace(plan, below, stream);
        if (interaction.message_skip)
            message_skip.emplace(*interaction.message_skip, plan.message_layout, plan.message_layout, stream);
        if (plan.skip) skip.emplace(*interaction.skip, below, plan.features_layout, stream);
        if (interaction.gated) {
            residual.emplace(interaction.gated->residual, plan.sender_layout, plan.linear_layout, stream);
            after.emplace(interaction.gated->after, plan.gate->out_layout, plan.message_layout, stream);
            gate.emplace(*plan.gate, stream);
        }
    }

    bool divides_by_density() const { return divides_by_density(plan); }

    const plan::LayerPlan<Real>& plan;
    DeviceLinear<Real> linear;
    std::optional<DeviceLinear<Real>> message_skip, skip, residual, after;
    std::optional<DeviceGate<Real>> gate;
    std::optional<DeviceEdgeNetwork<Real>> edge_network;
    DeviceContraction<Real> contraction;

    // Copies what the plan has prepared for these elements.
    void prepare(const std::vector<int>& elements, ThreadTeam& team, cudaStream_t stream) {
        if (edge_network) edge_network->prepare(elements, team, stream);
        DeviceConvolution<Real>::prepare(elements, stream);
        contraction.prepare(elements, stream);
    }

    // [atom][...]
    mlff::gpu::DeviceBuffer<Real> senders;  // what atoms send; that of the first layer is in FirstFeatures
    mlff::gpu::DeviceBuffer<Real> scaled;   // linear map of the sums, divided: the gate's input without the residual
    mlff::gpu::DeviceBuffer<Real> gate_inputs;
    mlff::gpu::DeviceBuffer<Real> contracted_in;  // input of the contraction, if it is not `scaled`
    mlff::gpu::DeviceBuffer<Real> features, features_gradient;
    mlff::gpu::DeviceBuffer<Real> densities, divisors;

private:
    // A constant divisor of messages is part of their maps. One that depends on densities is not.
    static bool divides_by_density(const plan::LayerPlan<Real>& plan) { return plan.columns.density >= 0; }
    static double message_factor(const plan::LayerPlan<Real>& plan) {
        return divides_by_density(plan) ? 1 : 1 / plan.layer.interaction.divisor_constant;
    }
};

}  // namespace mlff::mace::gpu
