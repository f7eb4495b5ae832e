// SPDX-License-Identifier: MIT
// The symmetric contraction: products of up to four components of the messages of one atom.
#pragma once

#include "mace/weights/weights.h"

namespace mlff::mace::reference {

// B[M][u] = sum over terms of coefficient * weights[element][path][u] * A[i1][u] * ... * A[i_order][u];
// `basis` is A and `product` B, both as features (block by block, [u][m]).
void compute_contraction(const SymmetricContraction& contraction, int element, const double* basis, double* product);
// Overwrites basis_gradient with the gradient with respect to A.
void reverse_contraction(const SymmetricContraction& contraction, int element, const double* basis,
                         const double* product_gradient, double* basis_gradient);

}  // namespace mlff::mace::reference
