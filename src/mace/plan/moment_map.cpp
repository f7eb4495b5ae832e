// SPDX-License-Identifier: MIT
#include "mace/plan/moment_map.h"

#include "equivariant/linear.h"
#include "mace/plan/edge_functions.h"

namespace mlff::mace::plan {
namespace {

bool applies(const Weights& weights, const Layer& layer) {
    const Interaction& interaction = layer.interaction;
    if (&layer != &weights.layers.front() || weights.joint_embedding ||
        interaction.edge_input == Interaction::EdgeInput::features)
        return false;
    if (!interaction.convolution.in.all_scalar() || interaction.convolution.paths.empty() ||
        interaction.message.element_count != 1)
        return false;
    if (!ends_in_linear_layer(interaction.radial_network)) return false;
    return columns_of_hidden(interaction).count <= columns_of_weights(interaction).count;
}

// The block and copy of `irreps` that number `offset` of a feature vector belongs to.
struct BlockCopy {
    int block = 0, copy = 0;
};
BlockCopy find_block(const Irreps& irreps, int offset) {
    int block = 0;
    while (offset >= irreps[block].offset + irreps[block].size()) ++block;
    return {block, (offset - irreps[block].offset) / irreps[block].irrep.dimension()};
}

}  // namespace

template <class Real>
MomentMaps<Real>::MomentMaps(const Weights& weights, const Layer& layer, const RowLayout& messages)
    : weights_(weights), interaction_(layer.interaction), messages_(messages) {
    const RadialColumns columns = columns_of_hidden(interaction_);
    for (const Convolution::Path& path : interaction_.convolution.paths)
        irreps_.append(columns.hidden_count + (columns.has_constant ? 1 : 0),
                       interaction_.convolution.out[path.out_block].irrep);
    layout_ = RowLayout(irreps_);
}

template <class Real>
Linear MomentMaps<Real>::plain_map(int sender_element) const {
    const Convolution& convolution = interaction_.convolution;
    const DenseLayer& last = interaction_.radial_network.layers.back();
    const auto channels = static_cast<size_t>(weights_.channel_count),
               weight_count = static_cast<size_t>(convolution.weight_count);
    std::vector<double> sender(static_cast<size_t>(convolution.in.dimension()));
    compute_linear(interaction_.up, sender_element,
                   weights_.node_embedding.data() + static_cast<size_t>(sender_element) * channels, sender.data());

    Linear map;
    map.in = irreps_;
    map.out = interaction_.message.out;
    for (size_t p = 0; p < convolution.paths.size(); ++p) {
        const Convolution::Path& path = convolution.paths[p];
        const auto function_count = static_cast<size_t>(irreps_[static_cast<int>(p)].multiplicity);
        const double* features = sender.data() + convolution.in[path.in_block].offset;
        const BlockCopy place = find_block(interaction_.message.in, convolution.out[path.out_block].offset);
        for (const Linear::Path& message : interaction_.message.paths) {
            if (message.in_block != place.block) continue;
            const auto out_count = static_cast<size_t>(interaction_.message.out[message.out_block].multiplicity);
            Linear::Path product{static_cast<int>(p), message.out_block,
                                 std::vector<double>(function_count * out_count, 0.0)};
            for (size_t h = 0; h < function_count; ++h) {
                const double* last_row =
                    h < static_cast<size_t>(last.in_width) ? last.weight.data() + h * weight_count : last.bias.data();
                double* to = product.weight.data() + h * out_count;
                for (size_t u = 0; u < static_cast<size_t>(convolution.in[path.in_block].multiplicity); ++u) {
                    const double factor =
                        last.activation.factor * last_row[static_cast<size_t>(path.weight_offset) + u] * features[u];
                    const double* from = message.weight.data() + (static_cast<size_t>(place.copy) + u) * out_count;
                    for (size_t w = 0; w < out_count; ++w) to[w] += factor * from[w];
                }
            }
            map.paths.push_back(std::move(product));
        }
    }
    return map;
}

template <class Real>
void MomentMaps<Real>::prepare(int sender_element) {
    if (!maps_.contains(sender_element))
        maps_.emplace(sender_element, LinearMap<Real>(plain_map(sender_element), layout_, messages_));
}

template <class Real>
std::optional<MomentMaps<Real>> make_moment_maps(const Weights& weights, const Layer& layer,
                                                 const RowLayout& messages) {
    if (!applies(weights, layer)) return std::nullopt;
    return MomentMaps<Real>(weights, layer, messages);
}

template class MomentMaps<float>;
template class MomentMaps<double>;
template std::optional<MomentMaps<float>> make_moment_maps<float>(const Weights&, const Layer&, const RowLayout&);
template std::optional<MomentMaps<double>> make_moment_maps<double>(const Weights&, const Layer&, const RowLayout&);

}  // namespace mlff::mace::plan
