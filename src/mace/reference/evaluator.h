// SPDX-License-Identifier: MIT
// The reference backend: MACE in plain double-precision loops, one file per stage, with forward and reverse pass next
// to each other. It is written to be read, and every faster backend is compared with it.
#pragma once

#include <memory>
#include <vector>

#include "equivariant/reference/edge_data.h"
#include "mace/reference/interaction.h"
#include "mace/weights/weights.h"
#include "potential/evaluator.h"

namespace mlff::mace::reference {

class ReferenceEvaluator : public Evaluator {
public:
    // Throws Error{argument} if there is no such head.
    ReferenceEvaluator(std::shared_ptr<const Weights> weights, int head);

    // Atomic energies are MACE's node energies: unlike the total energy, they do not include the embedding readout.
    // Half of an edge's virial goes to its receiver, half to its sender. Results do not depend on the number of
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
    std::vector<std::vector<double>> features_;  // [layer + 1][atom][...]: before the first layer, and after each
    std::vector<InteractionState> interactions_;
    std::vector<double> interaction_energy_;  // [atom], before scale and shift
    std::vector<double> vector_gradient_;     // [edge][3]
};

}  // namespace mlff::mace::reference
