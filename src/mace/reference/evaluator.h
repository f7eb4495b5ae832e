// SPDX-License-Identifier: MIT
// The reference backend: MACE in plain double-precision loops, one file for each stage, forward and reverse side by
// side. It is meant to be read, and to be the measure of every faster backend.
#pragma once

#include <memory>
#include <vector>

#include "mace/reference/edge_data.h"
#include "mace/reference/interaction.h"
#include "mace/weights/weights.h"
#include "potential/evaluator.h"

namespace mlff::mace::reference {

class ReferenceEvaluator : public Evaluator {
public:
    // Throws Error{argument} if there is no such head.
    ReferenceEvaluator(std::shared_ptr<const Weights> weights, int head);

    // The energies of atoms are MACE's node energies: they do not contain the embedding readout, the energy does. Of
    // the virial of an edge, half goes to its receiver and half to its sender. Results do not depend on the number of
    // threads. Throws Error{system} for an element the model does not know.
    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override;

private:
    void find_elements(const SystemView& system);
    void compute_repulsion(ThreadTeam& team);
    void compute_readouts(ThreadTeam& team);
    void reverse_repulsion();
    void reverse_readouts(size_t layer, std::vector<double>& gradient, ThreadTeam& team) const;
    void reverse_layers(ThreadTeam& team);
    void write_energies(const Outputs& outputs) const;
    void write_descriptors(const Outputs& outputs) const;

    std::shared_ptr<const Weights> weights_;
    int head_;
    std::vector<int> elements_;  // [atom]
    EdgeData edges_;
    std::vector<std::vector<double>> features_;  // [layer + 1][atom][...]: before the first layer, after each
    std::vector<InteractionState> interactions_;
    std::vector<double> interaction_energy_;  // [atom], before scale and shift
    std::vector<double> vector_gradient_;     // [edge][3]
};

}  // namespace mlff::mace::reference
