// SPDX-License-Identifier: MIT
// The first features of the atoms. They depend on the elements, the charge and the spin, not on positions.
#pragma once

#include <span>
#include <vector>

#include "core/system_view.h"
#include "mace/weights/weights.h"

namespace mlff::mace {

// features[atom] = embedding[element] + silu(projection [embedded charge, embedded spin])
// Throws Error{system} if the model has no embedding for the charge or spin.
void compute_embedding(const Weights& weights, const SystemView& system, std::span<const int> elements,
                       std::vector<double>& features);

// The embedding readout's energy of one atom; 0 without one. It is part of the total energy, not of the atomic energy.
double embedding_energy(const Weights& weights, int head, int element, const double* features);

// atom = E0 + (scale * interaction_energy + shift)
double atom_energy(const Weights& weights, int head, int element, double interaction_energy);

}  // namespace mlff::mace
