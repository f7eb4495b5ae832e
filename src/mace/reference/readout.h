// SPDX-License-Identifier: MIT
// The energy that one layer gives to one atom.
#pragma once

#include "mace/weights.h"

namespace mlff::mace::reference {

int column_of(const Readout& readout, int head);  // of the last map's output
// Whether a hidden number belongs to other heads only.
bool is_masked(const Readout& readout, int head, size_t hidden, size_t hidden_count);

// Column `head` of  last(mask(f(middle(mask(f(first(h)))))));  first(h) alone for a linear readout.
double compute_readout(const Readout& readout, int head, const double* features);
// Adds energy_gradient * d energy / d features.
void reverse_readout(const Readout& readout, int head, const double* features, double energy_gradient, double* features_gradient);

}  // namespace mlff::mace::reference
