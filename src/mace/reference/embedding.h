// SPDX-License-Identifier: MIT
// The first features of the atoms. They depend on the elements, the charge and the spin, not on positions.
#pragma once

#include <vector>

#include "core/system_view.h"
#include "engine/evaluator.h"
#include "mace/weights.h"

namespace mlff::mace::reference {

// features[atom] = embedding[element] + silu(projection [embedded charge, embedded spin])
// Throws Error{system} for a charge or spin that the model has no embedding for.
void compute_embedding(const Weights& weights, const SystemView& system, const std::vector<int>& elements,
                       std::vector<double>& features);

// The energy that the embedding readout gives to all atoms together; 0 without one.
double embedding_energy(const Weights& weights, int head, const std::vector<int>& elements, const std::vector<double>& features);

// Writes atom = E0 + (scale * interaction_energy[atom] + shift), and their sum with the embedding energy.
void write_energies(const Weights& weights, int head, const std::vector<int>& elements, const std::vector<double>& features,
                    const std::vector<double>& interaction_energy, const Outputs& outputs);

}  // namespace mlff::mace::reference
