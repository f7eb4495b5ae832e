// SPDX-License-Identifier: MIT
#include "nequip/gpu/readout_matrices.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace mlff::nequip::gpu {
namespace {

bool is_same(const Activation& a, const Activation& b) { return a.kind == b.kind && a.factor == b.factor; }

std::vector<double> bias_of(const DenseLayer& layer) {
    return layer.bias.empty() ? std::vector<double>(static_cast<size_t>(layer.out_width), 0.0) : layer.bias;
}

}  // namespace

std::string why_no_matrices(const DenseNetwork& readout) {
    const std::vector<DenseLayer>& layers = readout.layers;
    const Activation identity;
    if (layers.size() > 3) return "its readout has more than two hidden layers";
    if (!is_same(layers.back().activation, identity)) return "its readout ends in a function that is not linear";
    for (const DenseLayer& layer : layers)
        if (!layer.norm_scale.empty()) return "its readout has a normalisation";
    for (size_t i = 0; i + 1 < layers.size(); ++i)
        if (!is_same(layers[i].activation, layers.front().activation)) return "its readout has different functions";
    return "";
}

equivariant::gpu::ReadoutMatrices matrices_of(const DenseNetwork& readout, const Irreps& features) {
    const std::vector<DenseLayer>& layers = readout.layers;
    const DenseLayer &first = layers.front(), &last = layers.back();
    const auto width = static_cast<size_t>(first.out_width);
    equivariant::gpu::ReadoutMatrices result;
    result.first.assign(static_cast<size_t>(features.dimension()) * width, 0.0);
    auto from = first.weight.begin();
    for (const IrrepBlock& block : features.blocks()) {
        if (!block.irrep.is_scalar()) continue;
        const auto count = static_cast<std::ptrdiff_t>(static_cast<size_t>(block.multiplicity) * width);
        std::copy_n(from, count,
                    result.first.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(block.offset) * width));
        from += count;
    }
    result.first_bias = bias_of(first);
    if (layers.size() == 1) return result;
    result.activation = first.activation;
    if (layers.size() == 3) {
        result.middle = layers[1].weight;
        result.middle_bias = bias_of(layers[1]);
    }
    result.last = last.weight;
    result.last_bias = bias_of(last).front();
    return result;
}

}  // namespace mlff::nequip::gpu
