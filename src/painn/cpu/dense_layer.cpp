// SPDX-License-Identifier: MIT
#include "painn/cpu/dense_layer.h"

#include <algorithm>
#include <array>

namespace mlff::painn::cpu {
namespace {

template <class Real>
void multiply(const kernels::KernelTable<Real>& kernels, Rows<const Real> in, Rows<Real> out, int row_count,
              const Buffer<Real>& matrix, int depth, int width, bool accumulate) {
    std::array<const Real*, kMostRows> from;
    std::array<Real*, kMostRows> to;
    for (int row = 0; row < row_count; ++row) {
        from[static_cast<size_t>(row)] = in[row];
        to[static_cast<size_t>(row)] = out[row];
    }
    kernels.multiply_rows(from.data(), to.data(), row_count, matrix.data(), depth, width, accumulate);
}

}  // namespace

template <class Real>
DenseLayer<Real>::DenseLayer(const Linear& linear, int out_width) : in_width_(linear.in_width), out_width_(out_width) {
    const auto in = static_cast<size_t>(in_width_), out = static_cast<size_t>(out_width_);
    weight_.resize_discard(in * out);
    transposed_.resize_discard(static_cast<size_t>(kernels::padded(in_width_)) * out);
    std::fill(transposed_.begin(), transposed_.end(), Real(0));
    for (size_t o = 0; o < out; ++o)
        for (size_t i = 0; i < in; ++i)
            weight_[kernels::matrix_index(i, o, in)] = transposed_[kernels::matrix_index(o, i, out)] =
                static_cast<Real>(linear.weight[o * in + i]);
    if (linear.bias.empty()) return;
    bias_.resize_discard(out);
    for (size_t o = 0; o < out; ++o) bias_[o] = static_cast<Real>(linear.bias[o]);
}

template <class Real>
void DenseLayer<Real>::apply(const kernels::KernelTable<Real>& kernels, Rows<const Real> in, Rows<Real> out,
                             int row_count) const {
    if (!bias_.empty())
        for (int row = 0; row < row_count; ++row) std::copy(bias_.begin(), bias_.end(), out[row]);
    multiply(kernels, in, out, row_count, weight_, in_width_, out_width_, !bias_.empty());
}

template <class Real>
void DenseLayer<Real>::add(const kernels::KernelTable<Real>& kernels, Rows<const Real> in, Rows<Real> out,
                           int row_count) const {
    multiply(kernels, in, out, row_count, weight_, in_width_, out_width_, true);
}

template <class Real>
void DenseLayer<Real>::apply_transposed(const kernels::KernelTable<Real>& kernels, Rows<const Real> out_gradient,
                                        Rows<Real> in_gradient, int row_count, bool accumulate) const {
    multiply(kernels, out_gradient, in_gradient, row_count, transposed_, out_width_, kernels::padded(in_width_),
             accumulate);
}

template class DenseLayer<float>;
template class DenseLayer<double>;

}  // namespace mlff::painn::cpu
