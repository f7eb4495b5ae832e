// SPDX-License-Identifier: MIT
// Linear maps of features and their transposes, packed for the kernel multiply_rows.
#pragma once

#include <vector>

#include "core/buffer.h"
#include "core/stage_profile.h"
#include "equivariant/linear.h"
#include "equivariant/plan/kernel_table.h"
#include "equivariant/plan/row_layout.h"

namespace mlff::equivariant {

// Features of atoms, `stride` numbers apart: the i-th are those of atoms[i], or of atom i if `atoms` is nullptr.
template <class Real>
struct AtomRows {
    Real* first = nullptr;
    int stride = 0;
    const int64_t* atoms = nullptr;

    Real* operator[](int i) const { return first + (atoms ? atoms[i] : i) * stride; }
};

template <class Real>
class LinearMap {
public:
    LinearMap() = default;
    // A block of the map's irreps may be several blocks of the layouts `in` and `out`.
    LinearMap(const Linear& linear, const RowLayout& in, const RowLayout& out);

    // out[i] = map(in[i]), or += if `accumulate`
    void apply(const KernelTable<Real>& kernels, int element, AtomRows<const Real> in, AtomRows<Real> out,
               int atom_count, bool accumulate) const;
    // in_gradient[i] = transposed map(out_gradient[i]), or += if `accumulate`
    void apply_transposed(const KernelTable<Real>& kernels, int element, AtomRows<const Real> out_gradient,
                          AtomRows<Real> in_gradient, int atom_count, bool accumulate) const;

    int out_size() const { return out_size_; }
    // The transpose is the same work.
    StageWork work(int atom_count) const {
        double weights = 0, products = 0;
        for (const Path& path : paths_) {
            weights += static_cast<double>(path.in.copies) * path.out.copies;
            products += static_cast<double>(path.in.copies) * path.out.copies * path.in.components;
        }
        return {2 * products * atom_count,
                (weights + static_cast<double>(in_size_ + out_size_) * atom_count) * sizeof(Real)};
    }

private:
    struct Path {
        RowBlock in, out;
        // Offsets of the matrices [in.copies][out.stride] and [out.copies][in.stride] of element 0.
        size_t weight = 0, transposed = 0;
    };
    template <bool Transposed>
    void run(const KernelTable<Real>& kernels, int element, AtomRows<const Real> in, AtomRows<Real> out, int atom_count,
             bool accumulate) const;

    std::vector<Path> paths_;
    size_t weights_per_element_ = 0;
    int element_count_ = 1;
    int in_size_ = 0, out_size_ = 0;
    Buffer<Real> weights_;
};

}  // namespace mlff::equivariant
