// SPDX-License-Identifier: MIT
#include "mace/plan/layer_plan.h"

namespace mlff::mace::plan {
namespace {

// The features of atoms of one element in the first layer, if they depend on nothing else.
FeaturesOfElement first_senders(const Weights& weights, const Layer& layer) {
    if (&layer != &weights.layers.front() || weights.joint_embedding) return nullptr;
    return [&](int element) {
        std::vector<double> senders(static_cast<size_t>(layer.interaction.up.out.dimension()));
        compute_linear(
            layer.interaction.up, element,
            weights.node_embedding.data() + static_cast<size_t>(element) * static_cast<size_t>(weights.channel_count),
            senders.data());
        return senders;
    };
}

LayerOptions with_place(LayerOptions options, const Weights& weights, const Layer& layer) {
    options.is_first = &layer == &weights.layers.front();
    options.is_last = &layer == &weights.layers.back();
    return options;
}

}  // namespace

std::string why_not_on_cpu(const Weights& weights) {
    for (const Layer& layer : weights.layers) {
        const Interaction& interaction = layer.interaction;
        if (interaction.edge_input == Interaction::EdgeInput::features && interaction.density_network)
            return "its densities depend on the features of both atoms";
        std::vector<const Linear*> maps = {&interaction.up, &interaction.message, &layer.linear};
        if (interaction.down) maps.push_back(&*interaction.down);
        if (interaction.skip) maps.push_back(&*interaction.skip);
        if (interaction.message_skip) maps.push_back(&*interaction.message_skip);
        if (interaction.gated) maps.insert(maps.end(), {&interaction.gated->residual, &interaction.gated->after});
        for (const Linear* map : maps)
            if (!map->bias.empty()) return "its linear maps have biases";
        for (const Convolution::Path& path : interaction.convolution.paths)
            if (interaction.convolution.in[path.in_block].multiplicity !=
                interaction.convolution.out[path.out_block].multiplicity)
                return "its tensor products change the number of channels";
    }
    for (const Readout& readout : weights.readouts)
        if (!readout.first.out.all_scalar()) return "its readouts give vectors";
    return "";
}

template <class Real>
GatedPlan<Real>::GatedPlan(const Interaction::Gated& gated, const RowLayout& senders, const RowLayout& in,
                           const RowLayout& messages)
    : GatePlan<Real>(gated.gate, in),
      residual(gated.residual, senders, in),
      after(gated.after, this->out_layout, messages) {}

template <class Real>
LayerPlan<Real>::LayerPlan(const Weights& weights_in, const Layer& layer_in, const RowLayout& features_in,
                           LayerOptions options)
    : ConvolutionPlan<Real>(
          weights_in, layer_in.interaction, features_in,
          RowLayout(layer_in.interaction.gated ? layer_in.interaction.gated->gate.in : layer_in.contraction.in),
          first_senders(weights_in, layer_in), with_place(options, weights_in, layer_in)),
      weights(weights_in),
      layer(layer_in),
      message_layout(layer.contraction.in),
      features_layout(layer.linear.out),
      linear(layer.linear, RowLayout(layer.contraction.out), features_layout),
      contraction(layer.contraction) {
    if (layer.interaction.gated)
        gate.emplace(*layer.interaction.gated, this->sender_layout, this->linear_layout, message_layout);
    if (layer.interaction.message_skip)
        message_skip.emplace(*layer.interaction.message_skip, message_layout, message_layout);
    if (layer.interaction.skip && layer.uses_skip) skip.emplace(*layer.interaction.skip, features_in, features_layout);
}

template <class Real>
void LayerPlan<Real>::prepare(const std::vector<int>& elements_present, ThreadTeam& team) {
    ConvolutionPlan<Real>::prepare(elements_present, team);
    for (const int element : elements_present) contraction.prepare(element);
}

template struct GatedPlan<float>;
template struct GatedPlan<double>;
template struct LayerPlan<float>;
template struct LayerPlan<double>;

}  // namespace mlff::mace::plan
