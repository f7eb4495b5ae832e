// SPDX-License-Identifier: MIT
// The norm of the features of one atom (see `Norm` for the formula). Adjacent blocks of the same irrep count as one.
#pragma once

#include "equivariant/irreps.h"
#include "nequip/weights/weights.h"

namespace mlff::nequip {

// in, out: [irreps.dimension()]
void compute_norm(const Norm& norm, const Irreps& irreps, const double* in, double* out);
// Overwrites in_gradient with the gradient with respect to `in`.
void reverse_norm(const Norm& norm, const Irreps& irreps, const double* in, const double* out_gradient,
                  double* in_gradient);

}  // namespace mlff::nequip
