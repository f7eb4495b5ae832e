// SPDX-License-Identifier: MIT
#include "painn/reference/evaluator.h"

#include <algorithm>

#include "core/parallel.h"
#include "painn/functions/dense.h"
#include "painn/reference/message.h"
#include "painn/reference/update.h"
#include "potential/edge_results.h"

namespace mlff::painn::reference {

ReferenceEvaluator::ReferenceEvaluator(std::shared_ptr<const Weights> weights)
    : weights_(std::move(weights)), repulsion_(repulsion_pairs(*weights_)) {}

void ReferenceEvaluator::evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs,
                                  ThreadTeam& team) {
    edges_ = &edges;
    find_elements(*weights_, {&system, 1}, elements_);
    blocks_.resize(weights_->blocks.size());
    compute_embedding();
    for (size_t b = 0; b < blocks_.size(); ++b) compute_block(b, team);
    compute_energies(team);

    const bool wants_gradients = outputs.forces || outputs.virial || outputs.atom_virials;
    if (wants_gradients) {
        index_by_sender(edges, by_sender_);
        reverse_energies(team);
        for (size_t b = blocks_.size(); b-- > 0;) reverse_block(b, team);
    }
    // Write results only when nothing can fail any more.
    write_energies(outputs);
    if (outputs.descriptors) std::copy(last_.scalars.begin(), last_.scalars.end(), outputs.descriptors);
    if (!wants_gradients) return;
    write_forces(edges, vector_gradient_.data(), 0, edges.atom_count, outputs);
    write_virials(edges, vector_gradient_.data(), 0, edges.atom_count, outputs);
}

Vec3 ReferenceEvaluator::direction(int64_t edge) const {
    const double *vector = edges_->vector + 3 * edge, length = edges_->distance[edge];
    return {vector[0] / length, vector[1] / length, vector[2] / length};
}

const RepulsionPair& ReferenceEvaluator::repulsion(int element, int other) const {
    return repulsion_[static_cast<size_t>(element) * weights_->atomic_numbers.size() + static_cast<size_t>(other)];
}

SeenDistance ReferenceEvaluator::seen(int64_t edge, size_t receiver) const {
    return seen_distance(
        weights_->closest_of(elements_[receiver], elements_[static_cast<size_t>(edges_->sender[edge])]),
        edges_->distance[edge]);
}

// ---- forward ----

void ReferenceEvaluator::compute_embedding() {
    const auto width = static_cast<size_t>(weights_->hidden);
    last_.scalars.resize(atom_count() * width);
    last_.vectors.assign(atom_count() * 3 * width, 0.0);
    for (size_t atom = 0; atom < atom_count(); ++atom)
        std::copy_n(&weights_->embedding[static_cast<size_t>(elements_[atom]) * width], width,
                    &last_.scalars[atom * width]);
}

void ReferenceEvaluator::compute_block(size_t b, ThreadTeam& team) {
    const auto width = static_cast<size_t>(weights_->hidden);
    const Block& block = weights_->blocks[b];
    BlockState& state = blocks_[b];
    state.before = last_;
    state.phi.resize(atom_count() * 3 * width);
    for_each_atom(team, static_cast<int64_t>(atom_count()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        compute_two_layers(block.message_hidden, block.message_output, &state.before.scalars[a * width],
                           &state.phi[a * 3 * width]);
    });
    compute_messages(b, team);
    last_ = state.middle;
    for_each_atom(team, static_cast<int64_t>(atom_count()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        compute_update(block, &last_.scalars[a * width], &last_.vectors[a * 3 * width]);
    });
}

void ReferenceEvaluator::compute_messages(size_t b, ThreadTeam& team) {
    const auto width = static_cast<size_t>(weights_->hidden);
    BlockState& state = blocks_[b];
    state.middle = state.before;
    for_each_atom(team, edges_->atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        std::vector<double> filter(3 * width);
        for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge) {
            const auto sender = static_cast<size_t>(edges_->sender[edge]);
            compute_filter(*weights_, weights_->blocks[b], seen(edge, a).value, filter.data());
            const Message message = {weights_->hidden, filter.data(), &state.phi[sender * 3 * width],
                                     &state.before.vectors[sender * 3 * width], direction(edge)};
            add_message(message, &state.middle.scalars[a * width], &state.middle.vectors[a * 3 * width]);
        }
    });
}

void ReferenceEvaluator::compute_energies(ThreadTeam& team) {
    const auto width = static_cast<size_t>(weights_->hidden);
    atom_energies_.resize(atom_count());
    for_each_atom(team, static_cast<int64_t>(atom_count()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        const auto element = static_cast<size_t>(elements_[a]);
        double readout = 0, repulsion_sum = 0;
        compute_two_layers(weights_->readout_hidden, weights_->readout_output, &last_.scalars[a * width], &readout);
        for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge)
            repulsion_sum +=
                0.5 * pair_repulsion(repulsion(elements_[a], elements_[static_cast<size_t>(edges_->sender[edge])]),
                                     edges_->distance[edge])
                          .energy;
        atom_energies_[a] = weights_->atomic_energies[element] + weights_->scales[element] * readout + repulsion_sum;
    });
}

void ReferenceEvaluator::write_energies(const Outputs& outputs) const {
    if (outputs.atom_energies) std::copy(atom_energies_.begin(), atom_energies_.end(), outputs.atom_energies);
    if (!outputs.energy) return;
    *outputs.energy = 0;
    for (double energy : atom_energies_) *outputs.energy += energy;
}

// ---- reverse ----

// Initialises the gradients: of the last scalars through the readout, of the edges through the repulsion.
void ReferenceEvaluator::reverse_energies(ThreadTeam& team) {
    const auto width = static_cast<size_t>(weights_->hidden);
    gradient_.scalars.assign(last_.scalars.size(), 0.0);
    gradient_.vectors.assign(last_.vectors.size(), 0.0);
    vector_gradient_.resize(static_cast<size_t>(edges_->edge_count) * 3);
    for_each_atom(team, static_cast<int64_t>(atom_count()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        reverse_two_layers(weights_->readout_hidden, weights_->readout_output, &last_.scalars[a * width],
                           &weights_->scales[static_cast<size_t>(elements_[a])], &gradient_.scalars[a * width]);
        for (int64_t edge = edges_->first[atom]; edge < edges_->first[atom + 1]; ++edge) {
            const double slope =
                0.5 * pair_repulsion(repulsion(elements_[a], elements_[static_cast<size_t>(edges_->sender[edge])]),
                                     edges_->distance[edge])
                          .slope;
            const Vec3 u = direction(edge);
            for (size_t c = 0; c < 3; ++c) vector_gradient_[static_cast<size_t>(edge) * 3 + c] = slope * u[c];
        }
    });
}

void ReferenceEvaluator::reverse_block(size_t b, ThreadTeam& team) {
    const auto width = static_cast<size_t>(weights_->hidden);
    const BlockState& state = blocks_[b];
    for_each_atom(team, static_cast<int64_t>(atom_count()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        reverse_update(weights_->blocks[b], &state.middle.scalars[a * width], &state.middle.vectors[a * 3 * width],
                       &gradient_.scalars[a * width], &gradient_.vectors[a * 3 * width]);
    });
    reverse_messages(b, team);
}

// Every atom gathers the gradients of what it sent. The gradients before the block are those after the sum, plus the
// contribution of the messages.
void ReferenceEvaluator::reverse_messages(size_t b, ThreadTeam& team) {
    const auto width = static_cast<size_t>(weights_->hidden);
    const Block& block = weights_->blocks[b];
    const BlockState& state = blocks_[b];
    Features below = gradient_;
    for_each_atom(team, edges_->atom_count, [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        std::vector<double> filter(3 * width), filter_gradient(3 * width), phi_gradient(3 * width, 0.0);
        MessageGradient gradient = {filter_gradient.data(), phi_gradient.data(), &below.vectors[a * 3 * width]};
        for (auto i = static_cast<size_t>(by_sender_.first_sent[a]);
             i < static_cast<size_t>(by_sender_.first_sent[a + 1]); ++i) {
            const int64_t edge = by_sender_.sent[i];
            const auto receiver = static_cast<size_t>(by_sender_.receiver[static_cast<size_t>(edge)]);
            const double length = edges_->distance[edge];
            const SeenDistance seen_length = seen(edge, receiver);
            const Vec3 u = direction(edge);
            compute_filter(*weights_, block, seen_length.value, filter.data());
            const Message message = {weights_->hidden, filter.data(), &state.phi[a * 3 * width],
                                     &state.before.vectors[a * 3 * width], u};
            reverse_message(message, &gradient_.scalars[receiver * width], &gradient_.vectors[receiver * 3 * width],
                            gradient);
            const double slope =
                seen_length.slope * reverse_filter(*weights_, block, seen_length.value, filter_gradient.data());
            const double along =
                gradient.direction[0] * u[0] + gradient.direction[1] * u[1] + gradient.direction[2] * u[2];
            for (size_t c = 0; c < 3; ++c)
                vector_gradient_[static_cast<size_t>(edge) * 3 + c] +=
                    slope * u[c] + (gradient.direction[c] - along * u[c]) / length;
        }
        reverse_two_layers(block.message_hidden, block.message_output, &state.before.scalars[a * width],
                           phi_gradient.data(), &below.scalars[a * width]);
    });
    gradient_ = std::move(below);
}

}  // namespace mlff::painn::reference
