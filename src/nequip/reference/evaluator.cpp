// SPDX-License-Identifier: MIT
#include "nequip/reference/evaluator.h"

#include <algorithm>

#include "core/elements.h"
#include "core/error.h"
#include "core/parallel.h"
#include "equivariant/dense_network.h"
#include "nequip/functions/scalars.h"
#include "potential/edge_results.h"

namespace mlff::nequip::reference {

ReferenceEvaluator::ReferenceEvaluator(std::shared_ptr<const Weights> weights) : weights_(std::move(weights)) {}

void ReferenceEvaluator::evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs,
                                  ThreadTeam& team) {
    const size_t layer_count = weights_->layers.size();
    features_.resize(layer_count + 1);
    layers_.resize(layer_count);

    find_elements(system);
    compute_edges(*weights_, edges, elements_.data(), edges_, team);
    compute_first_features();
    for (size_t i = 0; i < layer_count; ++i)
        compute_layer(weights_->layers[i], edges_, features_[i].data(), layers_[i], features_[i + 1], team);
    compute_readout(team);

    const bool wants_gradients = outputs.forces || outputs.virial || outputs.atom_virials;
    if (wants_gradients) {
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

void ReferenceEvaluator::compute_first_features() {
    const auto size = static_cast<size_t>(weights_->first_irreps.dimension());
    features_[0].resize(elements_.size() * size);
    for (size_t atom = 0; atom < elements_.size(); ++atom)
        std::copy_n(weights_->first_features.data() + static_cast<size_t>(elements_[atom]) * size, size,
                    features_[0].data() + atom * size);
}

void ReferenceEvaluator::compute_readout(ThreadTeam& team) {
    const Irreps& irreps = weights_->layers.back().gate.out;
    const auto size = static_cast<size_t>(irreps.dimension());
    atom_energies_.resize(elements_.size());
    for_each_atom(team, static_cast<int64_t>(elements_.size()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        const auto element = static_cast<size_t>(elements_[a]);
        std::vector<double> scalars(static_cast<size_t>(weights_->readout.in_width()));
        copy_scalars(irreps, features_.back().data() + a * size, scalars.data());
        NetworkPass readout(weights_->readout);
        atom_energies_[a] = weights_->shift[element] + weights_->scale[element] * *readout.compute(scalars.data());
    });
}

// The gradient of the energy with respect to the features after the last layer.
std::vector<double> ReferenceEvaluator::reverse_readout(ThreadTeam& team) const {
    const Irreps& irreps = weights_->layers.back().gate.out;
    const auto size = static_cast<size_t>(irreps.dimension());
    std::vector<double> gradient(features_.back().size(), 0.0);
    for_each_atom(team, static_cast<int64_t>(elements_.size()), [&](int64_t atom) {
        const auto a = static_cast<size_t>(atom);
        std::vector<double> scalars(static_cast<size_t>(weights_->readout.in_width()));
        std::vector<double> scalars_gradient(scalars.size());
        copy_scalars(irreps, features_.back().data() + a * size, scalars.data());
        NetworkPass readout(weights_->readout);
        readout.compute(scalars.data());
        readout.reverse(&weights_->scale[static_cast<size_t>(elements_[a])], scalars_gradient.data());
        reverse_scalars(irreps, scalars_gradient.data(), gradient.data() + a * size);
    });
    return gradient;
}

// From the last layer to the first. The first features do not depend on positions.
void ReferenceEvaluator::reverse_layers(ThreadTeam& team) {
    std::vector<double> gradient = reverse_readout(team);
    for (size_t i = weights_->layers.size(); i-- > 0;) {
        std::vector<double> below(i > 0 ? features_[i].size() : 0, 0.0);
        reverse_layer(weights_->layers[i], layers_[i], gradient.data(), edges_, i > 0 ? below.data() : nullptr, team);
        gradient = std::move(below);
    }
}

void ReferenceEvaluator::write_energies(const Outputs& outputs) const {
    double sum = 0;
    for (double energy : atom_energies_) sum += energy;
    if (outputs.energy) *outputs.energy = sum;
    if (outputs.atom_energies) std::copy(atom_energies_.begin(), atom_energies_.end(), outputs.atom_energies);
}

void ReferenceEvaluator::write_descriptors(const Outputs& outputs) const {
    if (!outputs.descriptors) return;
    double* next = outputs.descriptors;
    for (size_t atom = 0; atom < elements_.size(); ++atom)
        for (size_t i = 0; i < weights_->layers.size(); ++i) {
            const Irreps& irreps = weights_->layers[i].gate.out;
            next = copy_scalars(irreps, features_[i + 1].data() + atom * static_cast<size_t>(irreps.dimension()), next);
        }
}

}  // namespace mlff::nequip::reference
