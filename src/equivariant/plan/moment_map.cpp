// SPDX-License-Identifier: MIT
#include "equivariant/plan/moment_map.h"

#include "equivariant/linear.h"
#include "equivariant/plan/edge_functions.h"

namespace mlff::equivariant {
namespace {

bool applies(const EdgeMessages& messages) {
    if (messages.edge_input == EdgeMessages::EdgeInput::features || !messages.convolution.in.all_scalar() ||
        messages.convolution.paths.empty() || messages.message.element_count != 1)
        return false;
    for (const Convolution::Path& path : messages.convolution.paths)
        if (path.distance_power != 0) return false;
    return ends_in_linear_layer(messages.radial_network) &&
           columns_of_hidden(messages).count <= columns_of_weights(messages).count;
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
MomentMaps<Real>::MomentMaps(const EdgeMessages& messages, const RowLayout& message_layout, FeaturesOfElement senders)
    : messages_(messages), senders_(std::move(senders)), message_layout_(message_layout) {
    const RadialColumns columns = columns_of_hidden(messages_);
    for (const Convolution::Path& path : messages_.convolution.paths)
        irreps_.append(columns.hidden_count + (columns.has_constant ? 1 : 0),
                       messages_.convolution.out[path.out_block].irrep);
    layout_ = RowLayout(irreps_);
}

template <class Real>
Linear MomentMaps<Real>::plain_map(int sender_element) const {
    const Convolution& convolution = messages_.convolution;
    const DenseLayer& last = messages_.radial_network.layers.back();
    const auto weight_count = static_cast<size_t>(convolution.weight_count);
    const std::vector<double> sender = senders_(sender_element);

    Linear map;
    map.in = irreps_;
    map.out = messages_.message.out;
    for (size_t p = 0; p < convolution.paths.size(); ++p) {
        const Convolution::Path& path = convolution.paths[p];
        const auto function_count = static_cast<size_t>(irreps_[static_cast<int>(p)].multiplicity);
        const double* features = sender.data() + convolution.in[path.in_block].offset;
        const BlockCopy place = find_block(messages_.message.in, convolution.out[path.out_block].offset);
        for (const Linear::Path& message : messages_.message.paths) {
            if (message.in_block != place.block) continue;
            const auto out_count = static_cast<size_t>(messages_.message.out[message.out_block].multiplicity);
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
        maps_.emplace(sender_element, LinearMap<Real>(plain_map(sender_element), layout_, message_layout_));
}

template <class Real>
std::optional<MomentMaps<Real>> make_moment_maps(const EdgeMessages& messages, const RowLayout& message_layout,
                                                 FeaturesOfElement senders) {
    if (!senders || !applies(messages)) return std::nullopt;
    return MomentMaps<Real>(messages, message_layout, std::move(senders));
}

template class MomentMaps<float>;
template class MomentMaps<double>;
template std::optional<MomentMaps<float>> make_moment_maps<float>(const EdgeMessages&, const RowLayout&,
                                                                  FeaturesOfElement);
template std::optional<MomentMaps<double>> make_moment_maps<double>(const EdgeMessages&, const RowLayout&,
                                                                    FeaturesOfElement);

}  // namespace mlff::equivariant
