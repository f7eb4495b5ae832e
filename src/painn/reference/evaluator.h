// SPDX-License-Identifier: MIT
// The reference backend of PaiNN: plain double-precision loops, with forward and reverse pass of each stage next to
// each other. It is written to be read, and every faster backend is compared with it.
#pragma once

#include <memory>
#include <vector>

#include "neighbors/edges_by_sender.h"
#include "painn/functions/near_field.h"
#include "painn/functions/repulsion_pairs.h"
#include "painn/weights/weights.h"
#include "potential/evaluator.h"

namespace mlff::painn::reference {

class ReferenceEvaluator : public Evaluator {
public:
    explicit ReferenceEvaluator(std::shared_ptr<const Weights> weights);

    // Half of an edge's virial goes to its receiver, half to its sender. Descriptors are the last scalars. Results do
    // not depend on the number of threads. Throws Error{system} for an element the model does not know.
    void evaluate(const SystemView& system, const Edges& edges, const Outputs& outputs, ThreadTeam& team) override;

private:
    struct Features {
        std::vector<double> scalars;  // [atom][F]
        std::vector<double> vectors;  // [atom][3][F]
    };
    struct BlockState {
        Features before, middle;  // the block's input; after its messages
        std::vector<double> phi;  // [atom][3F]
    };

    void compute_embedding();
    void compute_block(size_t b, ThreadTeam& team);
    void compute_messages(size_t b, ThreadTeam& team);
    void compute_energies(ThreadTeam& team);
    void reverse_energies(ThreadTeam& team);
    void reverse_block(size_t b, ThreadTeam& team);
    void reverse_messages(size_t b, ThreadTeam& team);
    void write_energies(const Outputs& outputs) const;
    size_t atom_count() const { return elements_.size(); }
    Vec3 direction(int64_t edge) const;
    const RepulsionPair& repulsion(int element, int other) const;
    SeenDistance seen(int64_t edge, size_t receiver) const;

    std::shared_ptr<const Weights> weights_;
    std::vector<RepulsionPair> repulsion_;  // [element][element]
    std::vector<int> elements_;             // [atom]
    const Edges* edges_ = nullptr;
    EdgesBySender by_sender_;
    std::vector<BlockState> blocks_;
    Features last_,
        gradient_;  // features after the last block; energy gradient with respect to the current stage's output
    std::vector<double> atom_energies_;
    std::vector<double> vector_gradient_;  // [edge][3]
};

}  // namespace mlff::painn::reference
