// SPDX-License-Identifier: MIT
// The gated non-linearity on padded rows of channels.
#pragma once

#include <vector>

#include "core/stage_profile.h"
#include "equivariant/gate.h"
#include "equivariant/plan/row_layout.h"

namespace mlff::equivariant {

template <class Real>
struct GatePlan {
    GatePlan(const Gate& gate, const RowLayout& in);

    const Gate& gate;
    RowLayout in_layout, out_layout;
    std::vector<int> scalar_at;  // [scalars, then gates]: index in the input
    int gate_at(int g) const { return scalar_at[static_cast<size_t>(gate.scalar_count + g)]; }

    void apply(const Real* in, Real* out) const;
    void reverse(const Real* in, const Real* out_gradient, Real* in_gradient) const;  // overwrites

    // Activations are not counted, their slopes are factors in the reverse.
    StageWork work(int atom_count, bool is_reverse) const {
        const double scalars = gate.scalar_count, gates = gate.gate_count, gated = gate.out.dimension() - scalars;
        const double flops = is_reverse ? scalars + gates + 3 * gated : gated,
                     numbers = (is_reverse ? 2 : 1) * in_layout.size + out_layout.size;
        return {flops * atom_count, numbers * atom_count * sizeof(Real)};
    }
};

}  // namespace mlff::equivariant
