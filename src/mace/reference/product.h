// SPDX-License-Identifier: MIT
// The second half of a layer: h' = linear(contraction(m)) + skip(h).
#pragma once

#include <vector>

#include "core/threads.h"
#include "mace/weights/weights.h"

namespace mlff::mace::reference {

// basis: m, [atom][...]; features: h; new_features: h', resized here.
void compute_product(const Layer& layer, const std::vector<int>& elements, const double* basis, const double* features,
                     std::vector<double>& new_features, ThreadTeam& team);
// Overwrites basis_gradient, and adds to features_gradient unless it is nullptr.
void reverse_product(const Layer& layer, const std::vector<int>& elements, const double* basis,
                     const double* new_features_gradient, std::vector<double>& basis_gradient,
                     double* features_gradient, ThreadTeam& team);

}  // namespace mlff::mace::reference
