// SPDX-License-Identifier: MIT
#include "nequip/reference/layer.h"

#include <algorithm>

#include "core/parallel.h"
#include "equivariant/gate.h"
#include "equivariant/linear.h"
#include "nequip/functions/norm.h"

namespace mlff::nequip::reference {

void compute_layer(const Layer& layer, const EdgeData& edges, const double* features, LayerState& state,
                   std::vector<double>& new_features, ThreadTeam& team) {
    const auto atoms = static_cast<size_t>(edges.list->atom_count);
    const auto sum_size = static_cast<size_t>(layer.convolution.out.dimension());
    const auto in_size = static_cast<size_t>(layer.self_connection.in.dimension());
    const auto gate_size = static_cast<size_t>(layer.gate.in.dimension());
    const auto out_size = static_cast<size_t>(layer.gate.out.dimension());
    state.update.resize(atoms * gate_size);
    state.gate_input.resize(atoms * gate_size);
    new_features.resize(atoms * out_size);

    std::vector<double> sum;
    compute_messages(layer, edges, features, state.messages, sum, team);
    for_each_atom(team, edges.list->atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        double* update = state.update.data() + a * gate_size;
        double* gate_input = state.gate_input.data() + a * gate_size;
        std::vector<double> own(gate_size);
        compute_linear(layer.message, edges.elements[a], sum.data() + a * sum_size, update);
        compute_linear(layer.self_connection, edges.elements[a], features + a * in_size, own.data());
        for (size_t i = 0; i < gate_size; ++i) update[i] += own[i];
        if (layer.norm)
            compute_norm(*layer.norm, layer.gate.in, update, gate_input);
        else
            std::copy_n(update, gate_size, gate_input);
        compute_gate(layer.gate, gate_input, new_features.data() + a * out_size);
    });
}

void reverse_layer(const Layer& layer, const LayerState& state, const double* new_features_gradient, EdgeData& edges,
                   double* features_gradient, ThreadTeam& team) {
    const auto atoms = static_cast<size_t>(edges.list->atom_count);
    const auto sum_size = static_cast<size_t>(layer.convolution.out.dimension());
    const auto in_size = static_cast<size_t>(layer.self_connection.in.dimension());
    const auto gate_size = static_cast<size_t>(layer.gate.in.dimension());
    const auto out_size = static_cast<size_t>(layer.gate.out.dimension());

    std::vector<double> sum_gradient(atoms * sum_size, 0.0);
    for_each_atom(team, edges.list->atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        std::vector<double> gate_gradient(gate_size), update_gradient(gate_size);
        reverse_gate(layer.gate, state.gate_input.data() + a * gate_size, new_features_gradient + a * out_size,
                     gate_gradient.data());
        if (layer.norm)
            reverse_norm(*layer.norm, layer.gate.in, state.update.data() + a * gate_size, gate_gradient.data(),
                         update_gradient.data());
        else
            update_gradient = gate_gradient;
        reverse_linear(layer.message, edges.elements[a], update_gradient.data(), sum_gradient.data() + a * sum_size);
        if (features_gradient)
            reverse_linear(layer.self_connection, edges.elements[a], update_gradient.data(),
                           features_gradient + a * in_size);
    });
    reverse_messages(layer, state.messages, sum_gradient.data(), edges, features_gradient, team);
}

}  // namespace mlff::nequip::reference
