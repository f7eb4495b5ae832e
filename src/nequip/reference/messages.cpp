// SPDX-License-Identifier: MIT
#include "nequip/reference/messages.h"

#include <cmath>

#include "core/parallel.h"
#include "equivariant/convolution.h"
#include "equivariant/dense_network.h"
#include "equivariant/linear.h"

namespace mlff::nequip::reference {
namespace {

size_t size_of(const Irreps& irreps) { return static_cast<size_t>(irreps.dimension()); }

// Calls visit(weight, power of the distance) for each weight of a path.
template <class Visit>
void for_each_weight(const Convolution& convolution, const Visit& visit) {
    for (const Convolution::Path& path : convolution.paths)
        for (int u = 0; u < convolution.in[path.in_block].multiplicity; ++u)
            visit(static_cast<size_t>(path.weight_offset + u), path.distance_power);
}

// w = network(R) f r^power for the edges that one atom receives; f is the cutoff if the basis does not contain it,
// else 1.
void compute_edge_weights(const EdgeMessages& messages, const EdgeData& edges, int64_t atom, MessageState& state) {
    NetworkPass radial(messages.radial_network);
    const auto weight_count = static_cast<size_t>(messages.convolution.weight_count);
    for (int64_t edge = edges.list->first[atom]; edge < edges.list->first[atom + 1]; ++edge) {
        const auto e = static_cast<size_t>(edge);
        const double* network = radial.compute(&edges.basis[e * edges.basis_count]);
        for_each_weight(messages.convolution, [&](size_t i, int power) {
            state.edge_weights[e * weight_count + i] =
                network[i] * edges.cutoff[e] * std::pow(edges.list->distance[edge], power);
        });
    }
}

// For the edges that one atom receives: gradients with respect to harmonics, radial basis, cutoff and distance.
void reverse_received_edges(const EdgeMessages& messages, const MessageState& state, int64_t atom,
                            const double* sum_gradient, EdgeData& edges) {
    NetworkPass radial(messages.radial_network);
    const auto weight_count = static_cast<size_t>(messages.convolution.weight_count);
    const size_t up_size = size_of(messages.up.out);
    std::vector<double> gradient(weight_count), basis_gradient(edges.basis_count);
    for (int64_t edge = edges.list->first[atom]; edge < edges.list->first[atom + 1]; ++edge) {
        const auto e = static_cast<size_t>(edge);
        const auto sender = static_cast<size_t>(edges.list->sender[edge]);
        const double r = edges.list->distance[edge];
        const double* weights = &state.edge_weights[e * weight_count];
        reverse_message_of_edge(messages.convolution, &state.up[sender * up_size],
                                &edges.harmonics[e * edges.harmonic_count], weights, sum_gradient,
                                &edges.harmonics_gradient[e * edges.harmonic_count], gradient.data());
        const double* network = radial.compute(&edges.basis[e * edges.basis_count]);
        for_each_weight(messages.convolution, [&](size_t i, int power) {
            const double factor = std::pow(r, power);
            edges.distance_gradient[e] += gradient[i] * weights[i] * power / r;
            edges.cutoff_gradient[e] += gradient[i] * network[i] * factor;
            gradient[i] *= edges.cutoff[e] * factor;
        });
        radial.reverse(gradient.data(), basis_gradient.data());
        for (size_t i = 0; i < edges.basis_count; ++i)
            edges.basis_gradient[e * edges.basis_count + i] += basis_gradient[i];
    }
}

// For the edges that one atom sends: gradients with respect to its g, then to its h.
void reverse_sent_edges(const EdgeMessages& messages, const MessageState& state, const EdgeData& edges, size_t atom,
                        const double* sum_gradient, double* features_gradient) {
    const auto weight_count = static_cast<size_t>(messages.convolution.weight_count);
    const size_t sum_size = size_of(messages.convolution.out);
    std::vector<double> up_gradient(size_of(messages.up.out), 0.0);
    for (int64_t i = edges.first_sent[atom]; i < edges.first_sent[atom + 1]; ++i) {
        const auto e = static_cast<size_t>(edges.sent[static_cast<size_t>(i)]);
        reverse_message_of_sender(messages.convolution, &edges.harmonics[e * edges.harmonic_count],
                                  &state.edge_weights[e * weight_count],
                                  sum_gradient + static_cast<size_t>(edges.receiver[e]) * sum_size, up_gradient.data());
    }
    reverse_linear(messages.up, edges.elements[atom], up_gradient.data(), features_gradient);
}

}  // namespace

void compute_messages(const EdgeMessages& messages, const EdgeData& edges, const double* features, MessageState& state,
                      std::vector<double>& sum, ThreadTeam& team) {
    const int64_t atom_count = edges.list->atom_count;
    const auto atoms = static_cast<size_t>(atom_count);
    const auto weight_count = static_cast<size_t>(messages.convolution.weight_count);
    const size_t feature_size = size_of(messages.up.in);
    const size_t up_size = size_of(messages.up.out);
    const size_t sum_size = size_of(messages.convolution.out);
    state.up.resize(atoms * up_size);
    state.edge_weights.resize(edges.receiver.size() * weight_count);
    sum.assign(atoms * sum_size, 0.0);

    for_each_atom(team, atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        compute_linear(messages.up, edges.elements[a], features + a * feature_size, state.up.data() + a * up_size);
    });
    for_each_atom(team, atom_count, [&](int64_t atom) {
        compute_edge_weights(messages, edges, atom, state);
        for (int64_t edge = edges.list->first[atom]; edge < edges.list->first[atom + 1]; ++edge) {
            const auto e = static_cast<size_t>(edge);
            compute_message(messages.convolution, &state.up[static_cast<size_t>(edges.list->sender[edge]) * up_size],
                            &edges.harmonics[e * edges.harmonic_count], &state.edge_weights[e * weight_count],
                            &sum[static_cast<size_t>(atom) * sum_size]);
        }
    });
}

void reverse_messages(const EdgeMessages& messages, const MessageState& state, const double* sum_gradient,
                      EdgeData& edges, double* features_gradient, ThreadTeam& team) {
    const int64_t atom_count = edges.list->atom_count;
    const size_t sum_size = size_of(messages.convolution.out);
    for_each_atom(team, atom_count, [&](int64_t atom) {
        reverse_received_edges(messages, state, atom, sum_gradient + static_cast<size_t>(atom) * sum_size, edges);
    });
    if (!features_gradient) return;
    for_each_atom(team, atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        reverse_sent_edges(messages, state, edges, a, sum_gradient, features_gradient + a * size_of(messages.up.in));
    });
}

}  // namespace mlff::nequip::reference
