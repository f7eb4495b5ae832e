// SPDX-License-Identifier: MIT
// The repulsion of two nuclei that a model may add to its network.
#pragma once

#include "equivariant/radial_basis.h"
#include "mace/weights/weights.h"

namespace mlff::mace {

// The energy of the receiver from one directed edge, and its derivative with respect to r.
ValueAndSlope pair_repulsion(const PairRepulsion& repulsion, const Weights& weights, int sender_element,
                             int receiver_element, double r);

}  // namespace mlff::mace
