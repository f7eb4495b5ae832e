// SPDX-License-Identifier: MIT
// The update of one atom after its messages, from its own scalars and vectors:
//   U v, V v = mix v;  n = sqrt(sum over x, y, z of (V v)^2 + 1e-8)
//   a_ss, a_sv, a_vv = update.output(silu(update.hidden([s, n])))
//   s += a_ss + a_sv * (sum over x, y, z of (U v)(V v));  v += a_vv * (U v)
#pragma once

#include "painn/weights/weights.h"

namespace mlff::painn::reference {

// Updates scalars[F] and vectors[3][F] in place.
void compute_update(const Block& block, double* scalars, double* vectors);

// `scalars`, `vectors`: before the update. Turns the gradients after the update into those before it.
void reverse_update(const Block& block, const double* scalars, const double* vectors, double* scalars_gradient,
                    double* vectors_gradient);

}  // namespace mlff::painn::reference
