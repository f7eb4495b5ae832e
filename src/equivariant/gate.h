// SPDX-License-Identifier: MIT
// The gated non-linearity on the features of one atom: a function acts on scalars; all else is multiplied by a gate.
#pragma once

#include "equivariant/activation.h"
#include "equivariant/irreps.h"

namespace mlff {

// Output: { scalar(x) of the scalars, gate(y) * v for each copy of the gated blocks }. Input: scalars, gates, gated
// blocks.
struct Gate {
    Irreps in;
    Irreps out;
    int scalar_count = 0;
    int gate_count = 0;
    Activation scalar_activation;
    Activation odd_scalar_activation;  // of 0o
    Activation gate_activation;

    const Activation& activation_of(const Irrep& scalar) const {
        return scalar.parity > 0 ? scalar_activation : odd_scalar_activation;
    }
};

void compute_gate(const Gate& gate, const double* in, double* out);
// Overwrites in_gradient with the gradient with respect to `in`.
void reverse_gate(const Gate& gate, const double* in, const double* out_gradient, double* in_gradient);

}  // namespace mlff
