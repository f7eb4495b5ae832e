// SPDX-License-Identifier: MIT
#include "mace/cpu/layer_plan.h"

#include <algorithm>

namespace mlff::mace::cpu {
namespace {

RadialColumns lay_out_columns(const Interaction& interaction) {
    RadialColumns columns;
    for (const Convolution::Path& path : interaction.convolution.paths) {
        columns.path.push_back(columns.count);
        columns.count += padded(interaction.convolution.in[path.in_block].multiplicity);
    }
    if (interaction.density_network) {
        columns.density = columns.count;
        columns.count += kRowPadding;
    }
    return columns;
}

template <class Real>
std::vector<PathPlan<Real>> plan_paths(const Convolution& convolution, const RowLayout& senders, const RowLayout& sums, const RadialColumns& columns) {
    std::vector<PathPlan<Real>> plans;
    for (size_t p = 0; p < convolution.paths.size(); ++p) {
        const Convolution::Path& path = convolution.paths[p];
        const RowBlock& in = senders.blocks[static_cast<size_t>(path.in_block)];
        const RowBlock& out = sums.blocks[static_cast<size_t>(path.out_block)];
        PathPlan<Real> plan;
        plan.in_offset = in.offset;
        plan.in_components = in.components;
        plan.out_offset = out.offset;
        plan.out_components = out.components;
        plan.stride = in.stride;
        plan.column = columns.path[p];
        plan.reversal = path.degree % 2 == 0 ? Real(1) : Real(-1);
        for (const Convolution::Coupling& coupling : path.couplings)
            plan.couplings.push_back({coupling.in * out.components + coupling.out, coupling.harmonic, static_cast<Real>(coupling.value)});
        plans.push_back(std::move(plan));
    }
    return plans;
}

}  // namespace

std::string why_not_on_cpu(const Weights& weights) {
    for (const Layer& layer : weights.layers) {
        const Interaction& interaction = layer.interaction;
        if (interaction.edge_input == Interaction::EdgeInput::features) return "its radial weights depend on the features of both atoms";
        if (interaction.gated) return "its interactions are gated";
        if (!interaction.up.bias.empty() || !interaction.message.bias.empty() || !layer.linear.bias.empty()) return "its linear maps have biases";
        for (const Convolution::Path& path : interaction.convolution.paths)
            if (interaction.convolution.in[path.in_block].multiplicity != interaction.convolution.out[path.out_block].multiplicity)
                return "its tensor products change the number of channels";
    }
    return "";
}

template <class Real>
LayerPlan<Real>::LayerPlan(const Weights& weights_in, const Layer& layer_in, const RowLayout& features_in)
    : weights(weights_in),
      layer(layer_in),
      sender_layout(layer.interaction.convolution.in),
      sums_layout(layer.interaction.convolution.out),
      message_layout(layer.contraction.in),
      features_layout(layer.linear.out),
      up(layer.interaction.up, features_in, sender_layout),
      message(layer.interaction.message, sums_layout, message_layout),
      linear(layer.linear, RowLayout(layer.contraction.out), features_layout),
      contraction(layer.contraction),
      columns(lay_out_columns(layer.interaction)) {
    if (layer.interaction.message_skip) message_skip.emplace(*layer.interaction.message_skip, message_layout, message_layout);
    if (layer.interaction.skip && layer.uses_skip) skip.emplace(*layer.interaction.skip, features_in, features_layout);
    paths = plan_paths<Real>(layer.interaction.convolution, sender_layout, sums_layout, columns);
    for (const auto& path : paths) {
        most_components = std::max(most_components, path.in_components);
        most_shares = std::max(most_shares, path.in_components * path.out_components);
    }
    const auto element_count = static_cast<size_t>(weights.element_count());
    if (depends_on_elements(weights, layer.interaction)) {
        receiver_stride = element_count;
        sender_stride = 1;
        tables.resize(element_count * element_count);
    } else {
        tables.resize(1);
    }
}

template <class Real>
void LayerPlan<Real>::prepare(const std::vector<int>& elements_present, ThreadTeam& team) {
    for (int receiver : elements_present) {
        contraction.prepare(receiver);
        for (int sender : elements_present) {
            auto& made = tables[static_cast<size_t>(receiver) * receiver_stride + static_cast<size_t>(sender) * sender_stride];
            if (!made) made = std::make_unique<RadialTable<Real>>(weights, layer.interaction, columns, sender, receiver, team);
        }
    }
}

template struct LayerPlan<float>;
template struct LayerPlan<double>;

}  // namespace mlff::mace::cpu
