// SPDX-License-Identifier: MIT
// Activations and gates of e3nn.
#include <algorithm>
#include <array>

#include "nequip/weights/loaders.h"

namespace mlff::nequip {
namespace {

struct NamedActivation {
    std::string_view name;
    Activation::Kind kind;
};
constexpr std::array<NamedActivation, 7> kActivations = {{
    {"silu", Activation::Kind::silu},
    {"tanh", Activation::Kind::tanh},
    {"sigmoid", Activation::Kind::sigmoid},
    {"abs", Activation::Kind::absolute},
    {"relu", Activation::Kind::relu},
    {"elu", Activation::Kind::elu},
    {"ssp", Activation::Kind::shifted_softplus},
}};

}  // namespace

Activation normalized_activation(const ModuleReader& reader, std::string_view name) {
    for (const NamedActivation& known : kActivations)
        if (known.name == name) return {known.kind, e3nn_factor(known.kind)};
    reader.unsupported("activation '", name, "' is not implemented");
}

Gate make_gate(const ModuleReader& reader, const Irreps& out) {
    Gate gate;
    gate.out = out;
    bool has_even_scalar = false;
    for (const IrrepBlock& block : out.blocks()) {
        if (block.irrep.degree > 0) {
            gate.gate_count += block.multiplicity;
        } else if (gate.gate_count > 0) {
            reader.unsupported("irreps '", out.text(),
                               "' have a scalar behind another irrep, which is not implemented");
        } else {
            gate.scalar_count += block.multiplicity;
            has_even_scalar |= block.irrep.is_scalar();
            gate.in.append(block.multiplicity, block.irrep);
        }
    }
    if (gate.gate_count > 0 && !has_even_scalar)
        reader.unsupported("irreps '", out.text(), "' have no 0e, so their gates are odd, which is not implemented");
    if (gate.gate_count > 0) gate.in.append(gate.gate_count, {0, 1});
    for (const IrrepBlock& block : out.blocks())
        if (block.irrep.degree > 0) gate.in.append(block.multiplicity, block.irrep);
    return gate;
}

Irreps sorted_gate_input(const Gate& gate) {
    std::vector<IrrepBlock> blocks = gate.in.blocks();
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const IrrepBlock& a, const IrrepBlock& b) { return is_before(a.irrep, b.irrep); });
    Irreps sorted;
    for (const IrrepBlock& block : blocks) sorted.append(block.multiplicity, block.irrep);
    return sorted.merged();
}

Linear to_gate_order(const Linear& sorted, const Gate& gate) {
    Linear result;
    result.in = sorted.in;
    result.out = gate.in;
    result.element_count = sorted.element_count;
    if (!sorted.bias.empty()) result.bias.assign(static_cast<size_t>(gate.in.dimension()), 0.0);
    std::vector<int> used(static_cast<size_t>(sorted.out.block_count()), 0);  // copies of each sorted block
    for (int b = 0; b < gate.in.block_count(); ++b) {
        const IrrepBlock& block = gate.in[b];
        int source = 0;
        while (!(sorted.out[source].irrep == block.irrep)) ++source;
        const auto first = static_cast<size_t>(used[static_cast<size_t>(source)]);
        const auto copies = static_cast<size_t>(block.multiplicity);
        const auto all_copies = static_cast<size_t>(sorted.out[source].multiplicity);
        used[static_cast<size_t>(source)] += block.multiplicity;
        for (const Linear::Path& path : sorted.paths) {
            if (path.out_block != source) continue;
            Linear::Path& part = result.paths.emplace_back(Linear::Path{path.in_block, b, {}});
            part.weight.reserve(path.weight.size() / all_copies * copies);
            for (size_t row = 0; row < path.weight.size(); row += all_copies)
                for (size_t u = 0; u < copies; ++u) part.weight.push_back(path.weight[row + first + u]);
        }
        if (sorted.bias.empty() || !block.irrep.is_scalar()) continue;
        for (size_t u = 0; u < copies; ++u)
            result.bias[static_cast<size_t>(block.offset) + u] =
                sorted.bias[static_cast<size_t>(sorted.out[source].offset) + first + u];
    }
    return result;
}

}  // namespace mlff::nequip
