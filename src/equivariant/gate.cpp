// SPDX-License-Identifier: MIT
#include "equivariant/gate.h"

namespace mlff {
namespace {

// Calls visit(index, activation) for each scalar.
template <class Visit>
void for_each_scalar(const Gate& gate, const Visit& visit) {
    int index = 0;
    for (const IrrepBlock& block : gate.out.blocks())
        for (int u = 0; u < block.multiplicity && index < gate.scalar_count; ++u)
            visit(index++, gate.activation_of(block.irrep));
}

// Calls visit(gate, first, dimension) for each copy of the gated blocks: the input index of its gate, the input index
// of its first component, and the number of components. In the output, components are gate_count positions lower.
template <class Visit>
void for_each_gated_copy(const Gate& gate, const Visit& visit) {
    int next_gate = gate.scalar_count;
    int offset = 0;
    for (const IrrepBlock& block : gate.in.blocks()) {
        for (int u = 0; u < block.multiplicity; ++u) {
            if (offset >= gate.scalar_count + gate.gate_count) visit(next_gate++, offset, block.irrep.dimension());
            offset += block.irrep.dimension();
        }
    }
}

}  // namespace

void compute_gate(const Gate& gate, const double* in, double* out) {
    for_each_scalar(gate, [&](int i, const Activation& activation) { out[i] = activate(activation, in[i]); });
    for_each_gated_copy(gate, [&](int gate_index, int first, int dimension) {
        const double factor = activate(gate.gate_activation, in[gate_index]);
        for (int m = 0; m < dimension; ++m) out[first - gate.gate_count + m] = factor * in[first + m];
    });
}

void reverse_gate(const Gate& gate, const double* in, const double* out_gradient, double* in_gradient) {
    for_each_scalar(gate, [&](int i, const Activation& activation) {
        in_gradient[i] = out_gradient[i] * activation_slope(activation, in[i]);
    });
    for_each_gated_copy(gate, [&](int gate_index, int first, int dimension) {
        const double factor = activate(gate.gate_activation, in[gate_index]);
        double sum = 0;
        for (int m = 0; m < dimension; ++m) {
            sum += out_gradient[first - gate.gate_count + m] * in[first + m];
            in_gradient[first + m] = out_gradient[first - gate.gate_count + m] * factor;
        }
        in_gradient[gate_index] = sum * activation_slope(gate.gate_activation, in[gate_index]);
    });
}

}  // namespace mlff
