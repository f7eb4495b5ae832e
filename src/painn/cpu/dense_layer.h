// SPDX-License-Identifier: MIT
// A dense layer and its transpose, packed for the kernel multiply_rows.
#pragma once

#include "core/buffer.h"
#include "core/stage_profile.h"
#include "cpu_kernels/kernel_table.h"
#include "painn/weights/weights.h"

namespace mlff::painn::cpu {

// Rows of numbers, `stride` apart.
template <class Real>
struct Rows {
    Real* first = nullptr;
    int stride = 0;

    Real* operator[](int row) const { return first + row * stride; }
};

inline constexpr int kMostRows = 96;  // of one call

template <class Real>
class DenseLayer {
public:
    DenseLayer() = default;
    // Uses the first `out_width` outputs of the layer, a multiple of kRowPadding. Input rows must be padded.
    DenseLayer(const Linear& linear, int out_width);
    explicit DenseLayer(const Linear& linear) : DenseLayer(linear, linear.out_width) {}

    int out_width() const { return out_width_; }
    // The transpose is the same work.
    StageWork work(int row_count) const {
        const double in = in_width_, out = out_width_, rows = row_count;
        return {2 * in * out * rows, (in * out + (in + out) * rows) * sizeof(Real)};
    }

    // out[row] = weight in[row] + bias
    void apply(const kernels::KernelTable<Real>& kernels, Rows<const Real> in, Rows<Real> out, int row_count) const;
    // out[row] += weight in[row]
    void add(const kernels::KernelTable<Real>& kernels, Rows<const Real> in, Rows<Real> out, int row_count) const;
    // in_gradient[row] = weight^T out_gradient[row], or += if `accumulate`
    void apply_transposed(const kernels::KernelTable<Real>& kernels, Rows<const Real> out_gradient,
                          Rows<Real> in_gradient, int row_count, bool accumulate) const;

private:
    int in_width_ = 0, out_width_ = 0;
    Buffer<Real> weight_, transposed_;  // matrices [in][out], [out][in, padded]
    Buffer<Real> bias_;                 // [out], or empty
};

}  // namespace mlff::painn::cpu
