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

    double epsilon() const { return epsilon_; }
    const Buffer<double>& scale() const { return scale_; }  // of each number: its factor; 0 in padding
    const Buffer<double>& share() const { return share_; }  // of the square of each number in s

private:
    double sum_of_squares(const Real* in) const;  // s

    double epsilon_;
    Buffer<double> scale_, share_;
};

}  // namespace mlff::nequip::plan
