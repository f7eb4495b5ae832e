// SPDX-License-Identifier: MIT
// The first features of the atoms. They depend on the elements, the charge and the spin, not on positions.
#pragma once

#include <span>
#include <vector>

#include "core/system_view.h"
#include "mace/weights/weights.h"

namespace mlff::mace {

// features[atom] = embedding[element] + silu(projection [embedded charge, embedded spin])
// Throws Error{system} for a charge or spin that the model has no embedding for.
void compute_embedding(const Weights& weights, const SystemView& system, std::span<const int> elements,
                       std::vector<double>& features);

// The energy that the embedding readout gives to one atom; 0 without one. It is in the energy, not in that of the atom.
double embedding_energy(const Weights& weights, int head, int element, const double* features);

// atom = E0 + (scale * interaction_energy + shift)
double atom_energy(const Weights& weights, int head, int element, double interaction_energy);

}  // namespace mlff::mace
