// SPDX-License-Identifier: MIT
#include "nequip/plan/norm_plan.h"

#include <algorithm>
#include <cmath>

namespace mlff::nequip::plan {

template <class Real>
NormPlan<Real>::NormPlan(const Norm& norm, const Irreps& irreps, const equivariant::RowLayout& layout)
    : epsilon_(norm.epsilon) {
    for (Buffer<double>* buffer : {&scale_, &share_}) {
        buffer->resize_discard(static_cast<size_t>(layout.size));
        std::fill(buffer->begin(), buffer->end(), 0.0);
    }
    const int merged_count = irreps.merged().block_count();  // adjacent blocks of one irrep count as one
    size_t copy = 0;
    for (int b = 0; b < irreps.block_count(); ++b) {
        const equivariant::RowBlock& block = layout.blocks[static_cast<size_t>(b)];
        for (int u = 0; u < block.copies; ++u, ++copy)
            for (int m = 0; m < block.components; ++m) {
                const auto at = static_cast<size_t>(block.offset + m * block.stride + u);
                scale_[at] = norm.scale[copy];
                share_[at] = 1.0 / (block.components * block.components * merged_count);
            }
    }
}

template <class Real>
double NormPlan<Real>::sum_of_squares(const Real* in) const {
    double sum = 0;
    for (size_t i = 0; i < scale_.size(); ++i)
        sum += share_[i] * static_cast<double>(in[i]) * static_cast<double>(in[i]);
    return sum;
}

template <class Real>
void NormPlan<Real>::apply(const Real* in, Real* out) const {
    const double inverse = 1 / std::sqrt(sum_of_squares(in) + epsilon_);
    for (size_t i = 0; i < scale_.size(); ++i) out[i] = static_cast<Real>(scale_[i] * inverse) * in[i];
}

// y = x scale / root, root^2 = s + epsilon:  dx = scale dy / root - x share (sum of y dy) / root^2
template <class Real>
void NormPlan<Real>::reverse(const Real* in, Real* gradient) const {
    const double inverse = 1 / std::sqrt(sum_of_squares(in) + epsilon_);
    double dot = 0;
    for (size_t i = 0; i < scale_.size(); ++i)
        dot += scale_[i] * static_cast<double>(in[i]) * static_cast<double>(gradient[i]);
    dot *= inverse * inverse * inverse;
    for (size_t i = 0; i < scale_.size(); ++i)
        gradient[i] = static_cast<Real>(scale_[i] * inverse * static_cast<double>(gradient[i]) -
                                        dot * share_[i] * static_cast<double>(in[i]));
}

template class NormPlan<float>;
template class NormPlan<double>;

}  // namespace mlff::nequip::plan
