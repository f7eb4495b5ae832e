// SPDX-License-Identifier: MIT
#include "equivariant/plan/convolution_plan.h"

#include <algorithm>

namespace mlff::equivariant {
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

template <class Real>
ConvolutionPlan<Real>::ConvolutionPlan(const EdgeModel& model_in, const EdgeMessages& messages_in,
                                       const RowLayout& features_in, const RowLayout& result, FeaturesOfElement senders,
                                       const ConvolutionOptions& options)
    : model(model_in),
      messages(messages_in),
      sender_layout(messages.convolution.in),
      sums_layout(messages.convolution.out),
      linear_layout(result),
      up(messages.up, features_in, sender_layout),
      message(messages.message, sums_layout, linear_layout),
      moments(make_moment_maps<Real>(messages, linear_layout, std::move(senders))),
      is_first(options.is_first),
      is_last(options.is_last),
      lowest_distance(std::max(equivariant::lowest_distance(model.radial), options.table_begin)),
      table_error_share(options.table_error_share),
      columns(moments || options.hidden_radial ? columns_of_hidden(messages) : columns_of_weights(messages)),
      functions(model, messages, columns) {
    if (messages.down) down.emplace(*messages.down, features_in, RowLayout(messages.down->out));
    paths = plan_paths<Real>(messages.convolution, sender_layout, sums_layout, columns);
    for (const auto& path : paths) {
        most_components = std::max(most_components, path.in_components);
        most_shares = std::max(most_shares, path.share_count());
        widest_path = std::max(widest_path, path.stride);
    }
    table_blocks = options.tables_in_blocks ? columns.widths : std::vector<int>{columns.count};
    if (options.exact_radial || messages.edge_input == EdgeMessages::EdgeInput::features) return;
    const auto element_count = static_cast<size_t>(model.element_count());
    if (depends_on_elements(model, messages)) {
        receiver_stride = element_count;
        sender_stride = 1;
        tables.resize(element_count * element_count);
    } else {
        tables.resize(1);
    }
}

template <class Real>
void ConvolutionPlan<Real>::prepare(const std::vector<int>& elements_present, ThreadTeam& team) {
    for (int receiver : elements_present) {
        if (moments) moments->prepare(receiver);
        for (int sender : elements_present) {
            if (!uses_tables()) continue;
            auto& made =
                tables[static_cast<size_t>(receiver) * receiver_stride + static_cast<size_t>(sender) * sender_stride];
            if (!made)
                made = std::make_unique<RadialTable<Real>>(make_radial_table<Real>(
                    functions, table_blocks, lowest_distance, model.cutoff, sender, receiver, team, table_error_share));
        }
    }
}

template struct ConvolutionPlan<float>;
template struct ConvolutionPlan<double>;

}  // namespace mlff::equivariant
