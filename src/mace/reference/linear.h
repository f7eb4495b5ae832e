// SPDX-License-Identifier: MIT
// Linear maps of the features of one atom.
#pragma once

#include "mace/weights.h"

namespace mlff::mace::reference {

// out[w][m] = sum over paths, u of weight[element][u][w] in[u][m] + bias
void compute_linear(const Linear& linear, int element, const double* in, double* out);
// Adds the gradient by `in`.
void reverse_linear(const Linear& linear, int element, const double* out_gradient, double* in_gradient);

}  // namespace mlff::mace::reference
