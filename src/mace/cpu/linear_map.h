// SPDX-License-Identifier: MIT
// Linear maps of features, packed for multiply_rows, with their transposes.
#pragma once

#include <vector>

#include "core/buffer.h"
#include "mace/cpu/kernel_table.h"
#include "mace/cpu/row_layout.h"
#include "mace/weights.h"

namespace mlff::mace::cpu {

template <class Real>
class LinearMap {
public:
    LinearMap() = default;
    // `in` and `out` are those of the linear map or finer: its blocks may be cut into several of the layout's.
    LinearMap(const Linear& linear, const RowLayout& in, const RowLayout& out);

    // out[atom] = or += map of in[atom], for atoms that lie in_stride and out_stride apart.
    void apply(const KernelTable<Real>& kernels, int element, const Real* in, int in_stride, Real* out, int out_stride, int atom_count,
               bool accumulate) const;
    // in_gradient[atom] = or += transposed map of out_gradient[atom]
    void apply_transposed(const KernelTable<Real>& kernels, int element, const Real* out_gradient, int out_stride, Real* in_gradient,
                          int in_stride, int atom_count, bool accumulate) const;

private:
    struct Path {
        RowBlock in, out;
        size_t weight = 0, transposed = 0;  // offsets for element 0: [copies in][out.stride] and [copies out][in.stride]
    };
    template <bool Transposed>
    void run(const KernelTable<Real>& kernels, int element, const Real* in, int in_stride, Real* out, int out_stride, int atom_count,
             bool accumulate) const;

    std::vector<Path> paths_;
    size_t weights_per_element_ = 0;
    int element_count_ = 1;
    int in_size_ = 0, out_size_ = 0;
    Buffer<Real> weights_;
};

}  // namespace mlff::mace::cpu
