// SPDX-License-Identifier: MIT
// The invariant features (0e) among all features of one atom: what readouts and descriptors see.
#pragma once

#include <algorithm>

#include "equivariant/irreps.h"

namespace mlff::nequip {

// Copies them in their order, and returns the end of what was written.
inline double* copy_scalars(const Irreps& irreps, const double* features, double* scalars) {
    for (const IrrepBlock& block : irreps.blocks())
        if (block.irrep.is_scalar()) scalars = std::copy_n(features + block.offset, block.multiplicity, scalars);
    return scalars;
}

// The reverse of copy_scalars: adds to features_gradient.
inline void reverse_scalars(const Irreps& irreps, const double* scalars_gradient, double* features_gradient) {
    for (const IrrepBlock& block : irreps.blocks())
        if (block.irrep.is_scalar())
            for (int u = 0; u < block.multiplicity; ++u) features_gradient[block.offset + u] += *scalars_gradient++;
}

}  // namespace mlff::nequip
