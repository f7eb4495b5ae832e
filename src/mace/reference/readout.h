// SPDX-License-Identifier: MIT
// The energy contribution of one layer to one atom.
#pragma once

#include "mace/weights/weights.h"

namespace mlff::mace::reference {

// Column `head` of  last(mask(f(middle(mask(f(first(h)))))));  first(h) alone for a linear readout.
double compute_readout(const Readout& readout, int head, const double* features);
// Adds energy_gradient * d energy / d features.
void reverse_readout(const Readout& readout, int head, const double* features, double energy_gradient,
                     double* features_gradient);

}  // namespace mlff::mace::reference
