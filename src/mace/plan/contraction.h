// SPDX-License-Identifier: MIT
// The symmetric contraction as one polynomial for all channels, with coefficients for each element made when it is
// first met.
#pragma once

#include <map>
#include <vector>

#include "core/buffer.h"
#include "core/stage_profile.h"
#include "mace/plan/kernel_table.h"
#include "mace/weights/weights.h"

namespace mlff::mace::plan {

template <class Real>
class Contraction {
public:
    explicit Contraction(const SymmetricContraction& contraction);

    void prepare(int element);  // makes its coefficients; before the calls below, from one thread

    // in [atom][row][stride()] -> out [atom][row][stride()], for atoms of one element. All rows start at multiples of
    // 64 bytes.
    void apply(const KernelTable<Real>& kernels, int element, const Real* in, Real* out, int atom_count,
               Buffer<Real>& work) const;
    // in_gradient is overwritten.
    void reverse(const KernelTable<Real>& kernels, int element, const Real* in, const Real* out_gradient,
                 Real* in_gradient, int atom_count, Buffer<Real>& work) const;

    int stride() const { return stride_; }
    int in_size() const { return contraction_.in_row_count * stride_; }
    int out_size() const { return contraction_.out_row_count * stride_; }

    // A leaf of the tree is a product that is added to the value, a branch below another too; in reverse there are the
    // gradients as well.
    StageWork work(int atom_count, bool is_reverse) const {
        const auto leaves = static_cast<double>(leaf_rows_.size()),
                   branches = static_cast<double>(steps_.size()) - contraction_.out_row_count;
        const double flops = is_reverse ? 4 * leaves + 5 * branches : 2 * (leaves + branches);
        const double numbers = (is_reverse ? 2 : 1) * contraction_.in_row_count + contraction_.out_row_count;
        return {flops * contraction_.channel_count * atom_count,
                (static_cast<double>(polynomial_coefficients_) + numbers * atom_count) * contraction_.channel_count *
                    sizeof(Real)};
    }

    Polynomial polynomial() const;
    const Buffer<Real>& coefficients(int element) const;  // [channel / 16][coefficient][16], once prepared

private:
    struct Source {  // coefficient += value * weights[path]
        int coefficient, path;
        double value;
    };
    void list_steps();
    PolynomialRows<Real> rows_of(int element, int channel, const Real* in, int atom_count, Buffer<Real>& work) const;

    const SymmetricContraction& contraction_;
    int stride_ = 0;
    int polynomial_coefficients_ = 0;
    std::vector<PolynomialStep> steps_;
    std::vector<int32_t> leaf_rows_;
    std::vector<Source> sources_;
    std::map<int, Buffer<Real>> coefficients_;  // by element: [channel / 16][coefficient][16]
};

}  // namespace mlff::mace::plan
