// SPDX-License-Identifier: MIT
// One layer of a model on the GPU: the stages of the host's plan, and their features of atoms. For CUDA sources only.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "gpu/runtime/device_buffer.h"
#include "mace/gpu/atoms.h"
#include "mace/gpu/contraction.h"
#include "mace/gpu/edge_network.h"
#include "mace/gpu/fused_messages.h"
#include "mace/gpu/linear.h"
#include "mace/gpu/messages.h"
#include "mace/gpu/moments.h"
#include "mace/plan/layer_plan.h"

namespace mlff::mace::gpu {

// Fused messages exist in single precision only.
template <class Real>
inline constexpr bool kCanFuse = sizeof(Real) == 4;

struct MessageOptions {
    bool are_fused = false, is_fast = false;
};

// Made from the host's plan, which must outlive it.
template <class Real>
struct DeviceLayer {
    DeviceLayer(const plan::LayerPlan<Real>& plan_in, const plan::RowLayout& below, int harmonic_count,
                int element_count, const MessageOptions& options, cudaStream_t stream)
        : plan(plan_in),
          up(plan.layer.interaction.up, below, plan.sender_layout, stream),
          message(divided(plan.layer.interaction.message), plan.sums_layout, plan.linear_layout, stream),
          linear(plan.layer.linear, plan::RowLayout(plan.layer.contraction.out), plan.features_layout, stream),
          contraction(plan.contraction, element_count, stream) {
        const Interaction& interaction = plan.layer.interaction;
        if (plan.moments)
            moments.emplace(plan, harmonic_count, stream);
        else if (!options.are_fused)
            messages.emplace(plan, harmonic_count, stream);
        else if constexpr (kCanFuse<Real>)
            fused.emplace(plan, harmonic_count, options.is_fast, stream);
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

    // A constant divisor of messages is part of their maps. One that depends on densities is not.
    bool divides_by_density() const { return plan.columns.density >= 0; }

    const plan::LayerPlan<Real>& plan;
    DeviceLinear<Real> up, message, linear;
    std::optional<DeviceLinear<Real>> message_skip, skip, residual, after;
    std::optional<DeviceGate<Real>> gate;
    // Exactly one of these three is there.
    std::optional<FusedMessages> fused;
    std::optional<DeviceMoments<Real>> moments;
    std::optional<DeviceMessages<Real>> messages;
    std::optional<DeviceEdgeNetwork<Real>> edge_network;
    DeviceContraction<Real> contraction;
    std::map<int, DeviceLinear<Real>> moment_maps;  // by the sender's element

    // Copies what the plan has prepared for these elements.
    void prepare(const std::vector<int>& elements, ThreadTeam& team, cudaStream_t stream) {
        if (edge_network) edge_network->prepare(elements, team, stream);
        if (fused) fused->prepare(stream);
        if (messages) messages->prepare(stream);
        if (moments) moments->prepare(stream);
        contraction.prepare(elements, stream);
        if (!plan.moments) return;
        for (int z : elements)
            if (!moment_maps.contains(z))
                moment_maps.try_emplace(z, divided(plan.moments->plain_map(z)), plan.moments->layout(),
                                        plan.linear_layout, stream);
    }

    // [atom][...]
    mlff::gpu::DeviceBuffer<Real> senders;  // what atoms send; that of the first layer is in FirstFeatures
    mlff::gpu::DeviceBuffer<Real> scaled;   // linear map of the sums, divided: the gate's input without the residual
    mlff::gpu::DeviceBuffer<Real> gate_inputs;
    mlff::gpu::DeviceBuffer<Real> contracted_in;  // input of the contraction, if it is not `scaled`
    mlff::gpu::DeviceBuffer<Real> features, features_gradient;
    mlff::gpu::DeviceBuffer<Real> densities, divisors;

private:
    Linear divided(Linear map) const {
        if (divides_by_density()) return map;
        const double factor = 1 / plan.layer.interaction.divisor_constant;
        for (Linear::Path& path : map.paths)
            for (double& weight : path.weight) weight *= factor;
        for (double& number : map.bias) number *= factor;
        return map;
    }
};

}  // namespace mlff::mace::gpu
