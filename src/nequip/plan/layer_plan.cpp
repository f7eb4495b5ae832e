// SPDX-License-Identifier: MIT
#include "nequip/plan/layer_plan.h"

#include <algorithm>

namespace mlff::nequip::plan {
namespace {

FeaturesOfElement first_senders(const Weights& weights, const Layer& layer) {
    if (&layer != &weights.layers.front()) return nullptr;
    return [&](int element) {
        std::vector<double> senders(static_cast<size_t>(layer.up.out.dimension()));
        compute_linear(layer.up, element,
                       weights.first_features.data() +
                           static_cast<size_t>(element) * static_cast<size_t>(weights.first_irreps.dimension()),
                       senders.data());
        return senders;
    };
}

// Radial functions are large where atoms never are, and sums of messages are rescaled by trained weights: with the
// usual tables forces would have errors of 2e-5 in single precision.
constexpr double kTableBegin = 0.5, kTableErrorShare = 0.2;

// Not just below the onset of the cutoff function, where the intervals of a table would be tiny.
double table_begin(const CutoffFunction& cutoff) {
    const bool is_just_above =
        cutoff.onset > kTableBegin && cutoff.onset - kTableBegin < 0.02 * (cutoff.radius - kTableBegin);
    return is_just_above ? cutoff.onset : kTableBegin;
}

ConvolutionOptions complete(ConvolutionOptions options, const Weights& weights, const Layer& layer) {
    options.is_first = &layer == &weights.layers.front();
    options.is_last = &layer == &weights.layers.back();
    options.table_begin = table_begin(weights.radial.cutoff);
    options.table_error_share = kTableErrorShare;
    return options;
}

// Only scalars have biases.
template <class Real>
Buffer<Real> bias_rows(const Linear& linear, const RowLayout& out) {
    Buffer<Real> rows;
    if (linear.bias.empty()) return rows;
    rows.resize_discard(static_cast<size_t>(out.size));
    std::fill(rows.begin(), rows.end(), Real(0));
    const auto pieces = match_blocks(linear.out, out);
    for (int b = 0; b < linear.out.block_count(); ++b) {
        const IrrepBlock& block = linear.out[b];
        if (block.irrep.degree > 0) continue;
        for (const RowPiece& piece : pieces[static_cast<size_t>(b)])
            for (int u = 0; u < piece.block.copies; ++u)
                rows[static_cast<size_t>(piece.block.offset + u)] =
                    static_cast<Real>(linear.bias[static_cast<size_t>(block.offset + piece.first_copy + u)]);
    }
    return rows;
}

}  // namespace

template <class Real>
LayerPlan<Real>::LayerPlan(const Weights& weights, const Layer& layer_in, const RowLayout& features_in,
                           ConvolutionOptions options)
    : ConvolutionPlan<Real>(weights, layer_in, features_in, RowLayout(layer_in.gate.in),
                            first_senders(weights, layer_in), complete(options, weights, layer_in)),
      layer(layer_in),
      features_layout(layer.gate.out),
      self_connection(layer.self_connection, features_in, this->linear_layout),
      gate(layer.gate, this->linear_layout),
      up_bias(bias_rows<Real>(layer.up, this->sender_layout)),
      message_bias(bias_rows<Real>(layer.message, this->linear_layout)) {
    if (layer.norm) norm.emplace(*layer.norm, layer.gate.in, this->linear_layout);
}

template struct LayerPlan<float>;
template struct LayerPlan<double>;

}  // namespace mlff::nequip::plan
