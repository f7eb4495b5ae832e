// SPDX-License-Identifier: MIT
#include "mace/reference/evaluator.h"

#include <algorithm>

#include "core/elements.h"
#include "core/error.h"
#include "core/parallel.h"
#include "mace/functions/embedding.h"
#include "mace/functions/pair_repulsion.h"
#include "mace/reference/product.h"
#include "mace/reference/readout.h"
#include "potential/edge_results.h"

namespace mlff::mace::reference {

ReferenceEvaluator::ReferenceEvaluator(std::shared_ptr<const Weights> weights, int head)
    : weights_(std::move(weights)), head_(head) {
    if (head < 0 || head >= weights_->head_count())
        fail(Status::argument, "there is no head ", head, "; the model has heads 0 to ", weights_->head_count() - 1);
}

void ReferenceEvaluator::evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs,
                                  ThreadTeam& team) {
    const size_t layer_count = weights_->layers.size();
    features_.resize(layer_count + 1);
    interactions_.resize(layer_count);

    find_elements(system);
    compute_edges(*weights_, edges, elements_.data(), edges_, team);
    compute_embedding(*weights_, system, elements_, features_[0]);
    for (size_t i = 0; i < layer_count; ++i) {
        const Layer& layer = weights_->layers[i];
        compute_interaction(layer.interaction, edges_, features_[i].data(), interactions_[i], team);
        compute_product(layer, elements_, interactions_[i].basis.data(), features_[i].data(), features_[i + 1], team);
    }
    interaction_energy_.assign(elements_.size(), 0.0);
    compute_repulsion(team);
    compute_readouts(team);

    const bool wants_gradients = outputs.forces || outputs.virial || outputs.atom_virials;
    if (wants_gradients) {
        reverse_repulsion();
        reverse_layers(team);
        reverse_edges(*weights_, edges_, vector_gradient_, team);
    }
    // Write results only when nothing can fail any more.
    write_energies(outputs);
    write_descriptors(outputs);
    if (!wants_gradients) return;
    write_forces(edges, vector_gradient_.data(), 0, edges.atom_count, outputs);
    write_virials(edges, vector_gradient_.data(), 0, edges.atom_count, outputs);
}

void ReferenceEvaluator::find_elements(const SystemView& system) {
    elements_.resize(static_cast<size_t>(system.atom_count));
    for (size_t atom = 0; atom < elements_.size(); ++atom) {
        elements_[atom] = weights_->element_of(system.atomic_numbers[atom]);
        if (elements_[atom] < 0)
            fail(Status::system, "atom ", atom, " has atomic number ", system.atomic_numbers[atom],
                 ", which the model does not know; it knows ", symbols_text(weights_->atomic_numbers));
    }
}

void ReferenceEvaluator::compute_repulsion(ThreadTeam& team) {
    if (!weights_->repulsion) return;
    const Edges& edges = *edges_.list;
    for_each_atom(team, edges.atom_count, [&](int64_t atom) {
        const int element = elements_[static_cast<size_t>(atom)];
        for (int64_t edge = edges.first[atom]; edge < edges.first[atom + 1]; ++edge) {
            const int sender_element = elements_[static_cast<size_t>(edges.sender[edge])];
            interaction_energy_[static_cast<size_t>(atom)] +=
                pair_repulsion(*weights_->repulsion, *weights_, sender_element, element, edges.distance[edge]).value;
        }
    });
}

void ReferenceEvaluator::reverse_repulsion() {
    if (!weights_->repulsion) return;
    const Edges& edges = *edges_.list;
    const double scale = weights_->scale[static_cast<size_t>(head_)];
    for (size_t edge = 0; edge < edges_.receiver.size(); ++edge) {
        const int sender_element = elements_[static_cast<size_t>(edges.sender[edge])];
        const int element = elements_[static_cast<size_t>(edges_.receiver[edge])];
        edges_.distance_gradient[edge] +=
            scale *
            pair_repulsion(*weights_->repulsion, *weights_, sender_element, element, edges.distance[edge]).slope;
    }
}

void ReferenceEvaluator::compute_readouts(ThreadTeam& team) {
    for (const Readout& readout : weights_->readouts) {
        const std::vector<double>& features = features_[static_cast<size_t>(readout.layer) + 1];
        const auto size = static_cast<size_t>(readout.first.in.dimension());
        for_each_atom(team, static_cast<int64_t>(elements_.size()), [&](int64_t atom) {
            const auto a = static_cast<size_t>(atom);
            interaction_energy_[a] += compute_readout(readout, head_, features.data() + a * size);
        });
    }
}

void ReferenceEvaluator::reverse_readouts(size_t layer, std::vector<double>& gradient, ThreadTeam& team) const {
    const double scale = weights_->scale[static_cast<size_t>(head_)];
    for (const Readout& readout : weights_->readouts) {
        if (static_cast<size_t>(readout.layer) != layer) continue;
        const std::vector<double>& features = features_[layer + 1];
        const auto size = static_cast<size_t>(readout.first.in.dimension());
        for_each_atom(team, static_cast<int64_t>(elements_.size()), [&](int64_t atom) {
            const auto a = static_cast<size_t>(atom);
            reverse_readout(readout, head_, features.data() + a * size, scale, gradient.data() + a * size);
        });
    }
}

void ReferenceEvaluator::write_energies(const Outputs& outputs) const {
    double sum = 0;
    for (size_t atom = 0; atom < elements_.size(); ++atom)
        sum += embedding_energy(*weights_, head_, elements_[atom],
                                features_[0].data() + atom * static_cast<size_t>(weights_->channel_count));
    for (size_t atom = 0; atom < elements_.size(); ++atom) {
        const double energy = atom_energy(*weights_, head_, elements_[atom], interaction_energy_[atom]);
        if (outputs.atom_energies) outputs.atom_energies[atom] = energy;
        sum += energy;
    }
    if (outputs.energy) *outputs.energy = sum;
}

void ReferenceEvaluator::write_descriptors(const Outputs& outputs) const {
    if (!outputs.descriptors) return;
    double* next = outputs.descriptors;
    for (size_t atom = 0; atom < elements_.size(); ++atom)
        for (size_t i = 0; i < weights_->layers.size(); ++i) {
            const Irreps& irreps = weights_->layers[i].linear.out;
            const double* features = features_[i + 1].data() + atom * static_cast<size_t>(irreps.dimension());
            for (const IrrepBlock& block : irreps.blocks())
                if (block.irrep.is_scalar()) next = std::copy_n(features + block.offset, block.multiplicity, next);
        }
}

// From the last layer to the first. The initial features do not depend on positions.
void ReferenceEvaluator::reverse_layers(ThreadTeam& team) {
    std::vector<double> gradient(features_.back().size(), 0.0);
    std::vector<double> basis_gradient;
    for (size_t i = weights_->layers.size(); i-- > 0;) {
        const Layer& layer = weights_->layers[i];
        reverse_readouts(i, gradient, team);
        std::vector<double> below(i > 0 ? features_[i].size() : 0, 0.0);
        double* features_gradient = i > 0 ? below.data() : nullptr;
        reverse_product(layer, elements_, interactions_[i].basis.data(), gradient.data(), basis_gradient,
                        features_gradient, team);
        reverse_interaction(layer.interaction, interactions_[i], basis_gradient.data(), edges_, features_gradient,
                            team);
        gradient = std::move(below);
    }
}

}  // namespace mlff::mace::reference
