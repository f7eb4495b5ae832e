// SPDX-License-Identifier: MIT
#include "mace/reference/interaction.h"

#include <cmath>

#include "core/parallel.h"
#include "equivariant/convolution.h"
#include "equivariant/dense_network.h"
#include "equivariant/gate.h"
#include "equivariant/linear.h"

namespace mlff::mace::reference {
namespace {

size_t size_of(const Irreps& irreps) { return static_cast<size_t>(irreps.dimension()); }

// [R, from sender, from receiver]: the input of the two networks of an edge.
void gather_edge_input(const Interaction& interaction, const EdgeData& edges, const InteractionState& state,
                       size_t edge, std::vector<double>& input) {
    const double* basis = &edges.basis[edge * edges.basis_count];
    input.assign(basis, basis + edges.basis_count);
    const auto width = static_cast<size_t>(interaction.edge_width);
    const auto sender = static_cast<size_t>(edges.list->sender[edge]);
    const auto receiver = static_cast<size_t>(edges.receiver[edge]);
    const auto append = [&](const std::vector<double>& table, size_t row) {
        const auto begin = table.begin() + static_cast<std::ptrdiff_t>(row * width);
        input.insert(input.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    };
    if (interaction.edge_input == Interaction::EdgeInput::features) {
        append(state.down, sender);
        append(state.down, receiver);
    } else if (interaction.edge_input == Interaction::EdgeInput::elements) {
        append(interaction.sender_table, static_cast<size_t>(edges.elements[sender]));
        append(interaction.receiver_table, static_cast<size_t>(edges.elements[receiver]));
    }
}

// Weights of the messages and density of one atom:  w = network(...) f,  density = sum over edges of tanh(d^2) f,
// f is the cutoff if the basis does not contain it, else 1.
void compute_edge_networks(const Interaction& interaction, const EdgeData& edges, int64_t atom,
                           InteractionState& state) {
    NetworkPass radial(interaction.radial_network);
    std::optional<NetworkPass> density_pass;
    if (interaction.density_network) density_pass.emplace(*interaction.density_network);
    const auto weight_count = static_cast<size_t>(interaction.convolution.weight_count);
    std::vector<double> input;
    double density = 0;
    for (int64_t edge = edges.list->first[atom]; edge < edges.list->first[atom + 1]; ++edge) {
        const auto e = static_cast<size_t>(edge);
        gather_edge_input(interaction, edges, state, e, input);
        const double* weights = radial.compute(input.data());
        for (size_t i = 0; i < weight_count; ++i)
            state.edge_weights[e * weight_count + i] = weights[i] * edges.cutoff[e];
        if (density_pass) {
            const double d = *density_pass->compute(input.data());
            density += std::tanh(d * d) * edges.cutoff[e];
        }
    }
    state.divisor[static_cast<size_t>(atom)] = interaction.divisor_constant + interaction.divisor_density * density;
}

// Computes m from the sum of the messages of one atom.
void compute_update(const Interaction& interaction, int element, size_t atom, const double* message_sum,
                    InteractionState& state) {
    const size_t scaled_size = size_of(interaction.message.out);
    double* scaled = &state.scaled[atom * scaled_size];
    compute_linear(interaction.message, element, message_sum, scaled);
    for (size_t i = 0; i < scaled_size; ++i) scaled[i] /= state.divisor[atom];
    double* basis = &state.basis[atom * size_of(interaction.message_irreps())];
    if (interaction.gated) {
        double* input = &state.gate_input[atom * scaled_size];
        std::vector<double> gated(size_of(interaction.gated->gate.out));
        compute_linear(interaction.gated->residual, element, &state.up[atom * size_of(interaction.up.out)], input);
        for (size_t i = 0; i < scaled_size; ++i) input[i] += scaled[i];
        compute_gate(interaction.gated->gate, input, gated.data());
        compute_linear(interaction.gated->after, element, gated.data(), basis);
    } else if (interaction.message_skip) {
        compute_linear(*interaction.message_skip, element, scaled, basis);
    } else {
        std::copy_n(scaled, scaled_size, basis);
    }
}

// From dE/dm of one atom: dE/d(sum of its messages), dE/d(density), and the part that reaches g through the residual.
double reverse_update(const Interaction& interaction, const InteractionState& state, int element, size_t atom,
                      const double* basis_gradient, double* sum_gradient, double* up_gradient) {
    const size_t scaled_size = size_of(interaction.message.out);
    std::vector<double> gradient(scaled_size, 0.0);
    if (interaction.gated) {
        std::vector<double> gated_gradient(size_of(interaction.gated->gate.out), 0.0);
        reverse_linear(interaction.gated->after, element, basis_gradient, gated_gradient.data());
        reverse_gate(interaction.gated->gate, &state.gate_input[atom * scaled_size], gated_gradient.data(),
                     gradient.data());
        reverse_linear(interaction.gated->residual, element, gradient.data(), up_gradient);
    } else if (interaction.message_skip) {
        reverse_linear(*interaction.message_skip, element, basis_gradient, gradient.data());
    } else {
        std::copy_n(basis_gradient, scaled_size, gradient.data());
    }
    double divisor_gradient = 0;
    for (size_t i = 0; i < scaled_size; ++i) {
        divisor_gradient -= gradient[i] * state.scaled[atom * scaled_size + i] / state.divisor[atom];
        gradient[i] /= state.divisor[atom];
    }
    reverse_linear(interaction.message, element, gradient.data(), sum_gradient);
    return divisor_gradient * interaction.divisor_density;
}

// For all atoms: gradients with respect to the sums of messages, the densities, g and down(h).
struct Gradients {
    std::vector<double> sum;
    std::vector<double> density;
    std::vector<double> up;
    std::vector<double> down;
    std::vector<double> sent_down;  // [edge][edge_width]: the part of `down` that belongs to the sender
};

// For the edges that one atom receives: gradients with respect to harmonics, radial basis, cutoff, and the features in
// the network inputs.
void reverse_received_edges(const Interaction& interaction, const InteractionState& state, int64_t atom,
                            EdgeData& edges, Gradients& gradients) {
    NetworkPass radial(interaction.radial_network);
    std::optional<NetworkPass> density_pass;
    if (interaction.density_network) density_pass.emplace(*interaction.density_network);
    const auto weight_count = static_cast<size_t>(interaction.convolution.weight_count);
    const auto width = static_cast<size_t>(interaction.edge_width);
    const size_t up_size = size_of(interaction.up.out);
    const auto receiver = static_cast<size_t>(atom);
    const double* sum_gradient = &gradients.sum[receiver * size_of(interaction.convolution.out)];
    std::vector<double> input, weights_gradient(weight_count);
    for (int64_t edge = edges.list->first[atom]; edge < edges.list->first[atom + 1]; ++edge) {
        const auto e = static_cast<size_t>(edge);
        const auto sender = static_cast<size_t>(edges.list->sender[edge]);
        const double cutoff = edges.cutoff[e];
        reverse_message_of_edge(interaction.convolution, &state.up[sender * up_size],
                                &edges.harmonics[e * edges.harmonic_count], &state.edge_weights[e * weight_count],
                                sum_gradient, &edges.harmonics_gradient[e * edges.harmonic_count],
                                weights_gradient.data());
        gather_edge_input(interaction, edges, state, e, input);
        std::vector<double> input_gradient(input.size());
        const double* weights = radial.compute(input.data());
        for (size_t i = 0; i < weight_count; ++i) {
            edges.cutoff_gradient[e] += weights_gradient[i] * weights[i];
            weights_gradient[i] *= cutoff;
        }
        radial.reverse(weights_gradient.data(), input_gradient.data());
        if (density_pass) {  // d tanh(x^2)/dx = 2 x (1 - tanh(x^2)^2)
            const double d = *density_pass->compute(input.data());
            const double t = std::tanh(d * d);
            edges.cutoff_gradient[e] += gradients.density[receiver] * t;
            const double gradient = gradients.density[receiver] * cutoff * 2 * d * (1 - t * t);
            std::vector<double> more(input.size());
            density_pass->reverse(&gradient, more.data());
            for (size_t i = 0; i < more.size(); ++i) input_gradient[i] += more[i];
        }
        for (size_t i = 0; i < edges.basis_count; ++i)
            edges.basis_gradient[e * edges.basis_count + i] += input_gradient[i];
        if (interaction.edge_input == Interaction::EdgeInput::features)
            for (size_t i = 0; i < width; ++i) {
                gradients.sent_down[e * width + i] = input_gradient[edges.basis_count + i];
                gradients.down[receiver * width + i] += input_gradient[edges.basis_count + width + i];
            }
    }
}

// For the edges that one atom sends: gradients with respect to its features, then to h.
void reverse_sent_edges(const Interaction& interaction, const InteractionState& state, const EdgeData& edges,
                        size_t atom, Gradients& gradients, double* features_gradient) {
    const auto weight_count = static_cast<size_t>(interaction.convolution.weight_count);
    const auto width = static_cast<size_t>(interaction.edge_width);
    const size_t sum_size = size_of(interaction.convolution.out);
    double* up_gradient = &gradients.up[atom * size_of(interaction.up.out)];
    for (int64_t i = edges.first_sent[atom]; i < edges.first_sent[atom + 1]; ++i) {
        const auto e = static_cast<size_t>(edges.sent[static_cast<size_t>(i)]);
        reverse_message_of_sender(interaction.convolution, &edges.harmonics[e * edges.harmonic_count],
                                  &state.edge_weights[e * weight_count],
                                  &gradients.sum[static_cast<size_t>(edges.receiver[e]) * sum_size], up_gradient);
        if (interaction.down)
            for (size_t k = 0; k < width; ++k) gradients.down[atom * width + k] += gradients.sent_down[e * width + k];
    }
    const int element = edges.elements[atom];
    reverse_linear(interaction.up, element, up_gradient, features_gradient);
    if (interaction.down) reverse_linear(*interaction.down, element, &gradients.down[atom * width], features_gradient);
}

}  // namespace

void compute_interaction(const Interaction& interaction, const EdgeData& edges, const double* features,
                         InteractionState& state, ThreadTeam& team) {
    const int64_t atom_count = edges.list->atom_count;
    const auto atoms = static_cast<size_t>(atom_count);
    const auto weight_count = static_cast<size_t>(interaction.convolution.weight_count);
    const size_t feature_size = size_of(interaction.up.in);
    const size_t up_size = size_of(interaction.up.out);
    const auto width = static_cast<size_t>(interaction.edge_width);
    state.up.resize(atoms * up_size);
    state.down.resize(interaction.down ? atoms * width : 0);
    state.edge_weights.resize(edges.receiver.size() * weight_count);
    state.divisor.resize(atoms);
    state.scaled.resize(atoms * size_of(interaction.message.out));
    state.gate_input.resize(interaction.gated ? state.scaled.size() : 0);
    state.basis.resize(atoms * size_of(interaction.message_irreps()));

    for_each_atom(team, atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        const double* h = features + a * feature_size;
        compute_linear(interaction.up, edges.elements[a], h, state.up.data() + a * up_size);
        if (interaction.down) compute_linear(*interaction.down, edges.elements[a], h, state.down.data() + a * width);
    });
    for_each_atom(team, atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        compute_edge_networks(interaction, edges, atom, state);
        std::vector<double> message_sum(size_of(interaction.convolution.out), 0.0);
        for (int64_t edge = edges.list->first[atom]; edge < edges.list->first[atom + 1]; ++edge) {
            const auto e = static_cast<size_t>(edge);
            compute_message(interaction.convolution, &state.up[static_cast<size_t>(edges.list->sender[edge]) * up_size],
                            &edges.harmonics[e * edges.harmonic_count], &state.edge_weights[e * weight_count],
                            message_sum.data());
        }
        compute_update(interaction, edges.elements[a], a, message_sum.data(), state);
    });
}

void reverse_interaction(const Interaction& interaction, const InteractionState& state, const double* basis_gradient,
                         EdgeData& edges, double* features_gradient, ThreadTeam& team) {
    const int64_t atom_count = edges.list->atom_count;
    const auto atoms = static_cast<size_t>(atom_count);
    const size_t sum_size = size_of(interaction.convolution.out);
    const size_t up_size = size_of(interaction.up.out);
    const auto width = static_cast<size_t>(interaction.down ? interaction.edge_width : 0);
    Gradients gradients;
    gradients.sum.assign(atoms * sum_size, 0.0);
    gradients.density.assign(atoms, 0.0);
    gradients.up.assign(atoms * up_size, 0.0);
    gradients.down.assign(atoms * width, 0.0);
    gradients.sent_down.assign(edges.receiver.size() * width, 0.0);

    for_each_atom(team, atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        gradients.density[a] = reverse_update(interaction, state, edges.elements[a], a,
                                              basis_gradient + a * size_of(interaction.message_irreps()),
                                              gradients.sum.data() + a * sum_size, gradients.up.data() + a * up_size);
    });
    for_each_atom(team, atom_count,
                  [&](int64_t atom) { reverse_received_edges(interaction, state, atom, edges, gradients); });
    if (!features_gradient) return;
    for_each_atom(team, atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        reverse_sent_edges(interaction, state, edges, a, gradients, features_gradient + a * size_of(interaction.up.in));
    });
}

}  // namespace mlff::mace::reference
