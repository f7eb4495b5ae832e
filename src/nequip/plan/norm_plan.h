// SPDX-License-Identifier: MIT
// The norm of a layer (Norm in nequip/weights/weights.h) on padded rows of channels.
#pragma once

#include "core/buffer.h"
#include "equivariant/plan/row_layout.h"
#include "nequip/weights/weights.h"

namespace mlff::nequip::plan {

template <class Real>
class NormPlan {
public:
    NormPlan(const Norm& norm, const Irreps& irreps, const equivariant::RowLayout& layout);

    void apply(const Real* in, Real* out) const;
    // Turns the gradient of the output into that of the input.
    void reverse(const Real* in, Real* gradient) const;

private:
    double sum_of_squares(const Real* in) const;  // s

    double epsilon_;
    Buffer<double> scale_, share_;  // of each number: its factor, and that of its square in s; 0 in padding
};

}  // namespace mlff::nequip::plan
