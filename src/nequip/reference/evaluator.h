// SPDX-License-Identifier: MIT
// The reference backend: NequIP in plain double-precision loops, one file per stage, with forward and reverse pass next
// to each other. It is written to be read, and every faster backend is compared with it.
#pragma once

#include <memory>
#include <vector>

#include "equivariant/reference/edge_data.h"
#include "nequip/reference/layer.h"
#include "nequip/weights/weights.h"
#include "potential/evaluator.h"

namespace mlff::nequip::reference {

class ReferenceEvaluator : public Evaluator {
public:
    explicit ReferenceEvaluator(std::shared_ptr<const Weights> weights);

    // The energy is the sum of the atomic energies. Half of an edge's virial goes to its receiver, half to its sender.
    // Results do not depend on the number of threads. Throws Error{system} for an element the model does not know.
    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override;

private:
    void find_elements(const SystemView& system);
    void compute_first_features();
    void compute_readout(ThreadTeam& team);
    std::vector<double> reverse_readout(ThreadTeam& team) const;
    void reverse_layers(ThreadTeam& team);
    void write_energies(const Outputs& outputs) const;
    void write_descriptors(const Outputs& outputs) const;

    std::shared_ptr<const Weights> weights_;
    std::vector<int> elements_;  // [atom]
    EdgeData edges_;
    std::vector<std::vector<double>> features_;  // [layer + 1][atom][...]: before the first layer, and after each
    std::vector<LayerState> layers_;
    std::vector<double> atom_energies_;    // [atom], eV
    std::vector<double> vector_gradient_;  // [edge][3]
};

}  // namespace mlff::nequip::reference
