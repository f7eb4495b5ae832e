// SPDX-License-Identifier: MIT
// The symmetric contraction as one polynomial for all channels. The coefficients of an element are made when it first
// occurs.
#pragma once

#include <map>
#include <vector>

#include "core/buffer.h"
#include "core/stage_profile.h"
#include "mace/plan/names.h"
#include "mace/weights/weights.h"

namespace mlff::mace::plan {

template <class Real>
class Contraction {
public:
    explicit Contraction(const SymmetricContraction& contraction);

    void prepare(int element);  // makes the element's coefficients; call it first, from one thread

    // `in` and `out` are [atom][row][stride()], for atoms of one element. All rows start at multiples of 64 bytes.
    void apply(const KernelTable<Real>& kernels, int element, const Real* in, Real* out, int atom_count,
               Buffer<Real>& work) const;
    // Overwrites in_gradient.
    void reverse(const KernelTable<Real>& kernels, int element, const Real* in, const Real* out_gradient,
                 Real* in_gradient, int atom_count, Buffer<Real>& work) const;

    int stride() const { return stride_; }
    int in_size() const { return contraction_.in_row_count * stride_; }
    int out_size() const { return contraction_.out_row_count * stride_; }

    // Every leaf of the tree, and every branch that has a parent, is a multiplication and an addition. The reverse also
    // computes gradients.
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
    const Buffer<Real>& coefficients(int element) const;  // [channel / 16][coefficient][16]; prepare() it first

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
