// SPDX-License-Identifier: MIT
#include "mace/plan/layer_plan.h"

#include <algorithm>

#include "mace/functions/activation.h"

namespace mlff::mace::plan {
namespace {

template <class Real>
std::vector<PathPlan<Real>> plan_paths(const Convolution& convolution, const RowLayout& senders, const RowLayout& sums,
                                       const RadialColumns& columns) {
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
        plan.column = columns.kind == RadialColumns::Kind::weights ? columns.path[p] : 0;
        plan.reversal = path.degree % 2 == 0 ? Real(1) : Real(-1);
        for (const Convolution::Coupling& coupling : path.couplings)
            plan.couplings.push_back(
                {coupling.in * out.components + coupling.out, coupling.harmonic, static_cast<Real>(coupling.value)});
        for (const auto& [share, harmonic, value] : plan.couplings) {
            plan.to_shares.push_back({share, harmonic, value});
            plan.to_harmonics.push_back({harmonic, share, value});
        }
        plans.push_back(std::move(plan));
    }
    return plans;
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
GatePlan<Real>::GatePlan(const Interaction::Gated& gated, const RowLayout& senders, const RowLayout& in,
                         const RowLayout& messages)
    : gate(gated.gate),
      in_layout(in),
      out_layout(gated.gate.out),
      residual(gated.residual, senders, in),
      after(gated.after, out_layout, messages) {
    for (const RowBlock& block : in_layout.blocks)
        for (int u = 0; u < block.copies && static_cast<int>(scalar_at.size()) < gate.scalar_count + gate.gate_count;
             ++u)
            scalar_at.push_back(block.offset + u);
}

// Calls visit(gate, find(gate), index in the input, index in the output) for every number of the gated blocks.
template <class Real, class Find, class Visit>
static void for_each_gated(const GatePlan<Real>& plan, const Find& find, const Visit& visit) {
    int scalars = 0, gate_number = 0;
    size_t out_block = 0;
    while (scalars < plan.gate.scalar_count) scalars += plan.out_layout.blocks[out_block++].copies;
    size_t in_block = plan.in_layout.blocks.size() - (plan.out_layout.blocks.size() - out_block);
    for (; out_block < plan.out_layout.blocks.size(); ++out_block, ++in_block) {
        const RowBlock &in = plan.in_layout.blocks[in_block], &out = plan.out_layout.blocks[out_block];
        for (int u = 0; u < out.copies; ++u, ++gate_number) {
            const auto found = find(gate_number);
            for (int m = 0; m < out.components; ++m)
                visit(gate_number, found, in.offset + m * in.stride + u, out.offset + m * out.stride + u);
        }
    }
}

template <class Real>
void GatePlan<Real>::apply(const Real* in, Real* out) const {
    std::fill_n(out, out_layout.size, Real(0));
    int scalar = 0;
    for (const RowBlock& block : out_layout.blocks)
        for (int u = 0; u < block.copies && scalar < gate.scalar_count; ++u, ++scalar)
            out[block.offset + u] = static_cast<Real>(
                activate(gate.scalar_activation, static_cast<double>(in[scalar_at[static_cast<size_t>(scalar)]])));
    const auto gate_value = [&](int g) {
        return static_cast<Real>(activate(gate.gate_activation, static_cast<double>(in[gate_at(g)])));
    };
    for_each_gated(*this, gate_value, [&](int, Real value, int from, int to) { out[to] = value * in[from]; });
}

template <class Real>
void GatePlan<Real>::reverse(const Real* in, const Real* out_gradient, Real* in_gradient) const {
    std::fill_n(in_gradient, in_layout.size, Real(0));
    int scalar = 0;
    for (const RowBlock& block : out_layout.blocks)
        for (int u = 0; u < block.copies && scalar < gate.scalar_count; ++u, ++scalar) {
            const int at = scalar_at[static_cast<size_t>(scalar)];
            in_gradient[at] = out_gradient[block.offset + u] *
                              static_cast<Real>(activation_slope(gate.scalar_activation, static_cast<double>(in[at])));
        }
    struct GateAndSlope {
        Real value, slope;
    };
    const auto gate_and_slope = [&](int g) {
        const auto x = static_cast<double>(in[gate_at(g)]);
        return GateAndSlope{static_cast<Real>(activate(gate.gate_activation, x)),
                            static_cast<Real>(activation_slope(gate.gate_activation, x))};
    };
    for_each_gated(*this, gate_and_slope, [&](int g, const GateAndSlope& found, int from, int to) {
        in_gradient[from] = found.value * out_gradient[to];
        in_gradient[gate_at(g)] += found.slope * in[from] * out_gradient[to];
    });
}

template <class Real>
LayerPlan<Real>::LayerPlan(const Weights& weights_in, const Layer& layer_in, const RowLayout& features_in,
                           const LayerOptions& options)
    : weights(weights_in),
      layer(layer_in),
      sender_layout(layer.interaction.convolution.in),
      sums_layout(layer.interaction.convolution.out),
      message_layout(layer.contraction.in),
      features_layout(layer.linear.out),
      linear_layout(layer.interaction.gated ? RowLayout(layer.interaction.gated->gate.in) : message_layout),
      up(layer.interaction.up, features_in, sender_layout),
      message(layer.interaction.message, sums_layout, linear_layout),
      linear(layer.linear, RowLayout(layer.contraction.out), features_layout),
      contraction(layer.contraction),
      moments(make_moment_maps<Real>(weights, layer, linear_layout)),
      lowest_distance(plan::lowest_distance(weights.radial)),
      columns(moments || options.hidden_radial ? columns_of_hidden(layer.interaction)
                                               : columns_of_weights(layer.interaction)),
      functions(weights, layer.interaction, columns) {
    if (layer.interaction.gated) gate.emplace(*layer.interaction.gated, sender_layout, linear_layout, message_layout);
    if (layer.interaction.message_skip)
        message_skip.emplace(*layer.interaction.message_skip, message_layout, message_layout);
    if (layer.interaction.skip && layer.uses_skip) skip.emplace(*layer.interaction.skip, features_in, features_layout);
    if (layer.interaction.down)
        down.emplace(*layer.interaction.down, features_in, RowLayout(layer.interaction.down->out));
    paths = plan_paths<Real>(layer.interaction.convolution, sender_layout, sums_layout, columns);
    for (const auto& path : paths) {
        most_components = std::max(most_components, path.in_components);
        most_shares = std::max(most_shares, path.share_count());
        widest_path = std::max(widest_path, path.stride);
    }
    table_blocks = options.tables_in_blocks ? columns.widths : std::vector<int>{columns.count};
    if (options.exact_radial || layer.interaction.edge_input == Interaction::EdgeInput::features) return;
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
        if (moments) moments->prepare(receiver);
        for (int sender : elements_present) {
            if (!uses_tables()) continue;
            auto& made =
                tables[static_cast<size_t>(receiver) * receiver_stride + static_cast<size_t>(sender) * sender_stride];
            if (!made)
                made = std::make_unique<RadialTable<Real>>(make_radial_table<Real>(
                    functions, table_blocks, lowest_distance, weights.cutoff, sender, receiver, team));
        }
    }
}

template struct GatePlan<float>;
template struct GatePlan<double>;
template struct LayerPlan<float>;
template struct LayerPlan<double>;

}  // namespace mlff::mace::plan
