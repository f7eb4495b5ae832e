// SPDX-License-Identifier: MIT
// The gated non-linearity on the features of one atom: a function acts on scalars; all else is multiplied by a gate.
#pragma once

#include "mace/weights/weights.h"

namespace mlff::mace::reference {

void compute_gate(const Gate& gate, const double* in, double* out);
// Overwrites in_gradient with the gradient with respect to `in`.
void reverse_gate(const Gate& gate, const double* in, const double* out_gradient, double* in_gradient);

}  // namespace mlff::mace::reference
