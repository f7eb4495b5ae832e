// SPDX-License-Identifier: MIT
// Gated non-linearity on the features of one atom: scalars pass through a function, everything else is scaled by one.
#pragma once

#include "mace/weights/weights.h"

namespace mlff::mace::reference {

void compute_gate(const Gate& gate, const double* in, double* out);
// Overwrites in_gradient with the gradient by `in`.
void reverse_gate(const Gate& gate, const double* in, const double* out_gradient, double* in_gradient);

}  // namespace mlff::mace::reference
