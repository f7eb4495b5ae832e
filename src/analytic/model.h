// SPDX-License-Identifier: MIT
// The model "analytic": a sum of Morse pair terms for any elements. It exists for tests and demonstrations of
// everything around a model; it was fitted to nothing and must not be used for science.
//
//   V(r) = D [ (1 - exp(-a (r - r0)))^2 - 1 ] f(r),   r0 = sum of the covalent radii, D = 1 eV, a = 1.8 / angstrom
//   f(r) = 1 - 10 t^3 + 15 t^4 - 6 t^5,  t = (r - 3) / 2 clamped to [0, 1]: smooth, 1 up to 3 angstrom and 0 from 5 on
//   E_i  = 1/2 sum over neighbours of V
#pragma once

#include <memory>

#include "potential/model.h"

namespace mlff {

std::shared_ptr<Model> make_analytic_model();

}  // namespace mlff
